float cos1(float); float cos2(float x, float y) { return cos1(x) + cos1(y); }
