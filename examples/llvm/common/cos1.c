float cos1(float x) { return 1 - x * x / 2; }
