int trap_add(int a, int b);
int trap_from_constructor(void);

/* Calls through the program's stubs while this library is being loaded: through a function of the
 * program, and, if stubs are exported, by this library's own name, which then is the stub. */
extern int host_add(int a, int b) __attribute__((weak));

static int from_constructor;

__attribute__((constructor)) static void construct(void)
{
    from_constructor = trap_add(20, 20) + (host_add ? host_add(1, 1) : 0);
}

int trap_add(int a, int b) { return a + b; }
int trap_from_constructor(void) { return from_constructor; }
