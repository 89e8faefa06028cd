float terms(float); float cos1(float x) { return terms(x * x); }
