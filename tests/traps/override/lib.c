int trap_value(void);

int trap_value(void) { return 1; }
