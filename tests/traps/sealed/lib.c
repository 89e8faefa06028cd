int trap_value(void);
int trap_other(void);

int trap_value(void) { return 42; }
int trap_other(void) { return 43; }
