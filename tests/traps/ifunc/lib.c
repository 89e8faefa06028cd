int trap_picked(int n);

static int one(int n) { return n + 1; }

static int (*pick(void))(int) { return one; }

int trap_picked(int n) __attribute__((ifunc("pick")));
