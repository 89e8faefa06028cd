int trap_value(void);

static int torn_down;

__attribute__((destructor)) static void destroy(void) { torn_down = 1; }

int trap_value(void) { return torn_down ? -1 : 42; }
