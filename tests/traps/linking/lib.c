double trap_scale(double x, int n);

double trap_scale(double x, int n) { return x * n; }
