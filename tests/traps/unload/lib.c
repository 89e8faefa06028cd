int trap_add(int a, int b);

int trap_add(int a, int b) { return a + b; }
