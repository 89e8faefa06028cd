double trap_mix(double a, float b, int c);
double trap_mix(double a, float b, int c) { return a + (double)b + c; }
