int trap_value(void);

static volatile int value;

__attribute__((constructor)) static void construct(void) { value = 42; }
__attribute__((destructor)) static void destroy(void) { value = -1; }

int trap_value(void) { return value; }
