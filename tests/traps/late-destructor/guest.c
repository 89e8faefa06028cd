/* libguest.so: the program needs it, so it is torn down after the program's own destructors. */
void guest_at_end(void (*function)(void));

static void (*at_end)(void);

void guest_at_end(void (*function)(void)) { at_end = function; }

__attribute__((destructor)) static void destroy(void)
{
    if (at_end) {
        at_end();
    }
}
