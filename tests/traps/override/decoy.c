/* A library of the same name in another directory. */
int trap_value(void);

int trap_value(void) { return 2; }
