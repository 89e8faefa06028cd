int trap_answer(int n);

static volatile int loaded;

/* The debugger stops here during the first call, and in the function after it. */
__attribute__((constructor)) static void trap_construct(void) { loaded = 1; }

int trap_answer(int n) { return n * loaded; }
