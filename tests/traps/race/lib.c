int trap_add(int a, int b);
int trap_multiply(int a, int b);

int trap_add(int a, int b) { return a + b; }
int trap_multiply(int a, int b) { return a * b; }
