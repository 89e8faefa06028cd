int trap_add(int a, int b);
int trap_new(int a);

int trap_add(int a, int b) { return a + b; }
#ifndef OLDER
int trap_new(int a) { return a; }
#endif
