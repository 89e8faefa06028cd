/* libtrap.so.1: the library that the program has stubs for. */
int trap_value(void);
int trap_versioned(void);

int trap_value(void) { return 1; }
int trap_versioned(void) { return 10; }
