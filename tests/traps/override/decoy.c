/* Lies in another folder, under the same name. */
int trap_value(void);

int trap_value(void) { return 2; }
