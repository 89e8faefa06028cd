/* libguest.so: the program needs it, so its destructors run after the program's own. */
void guest_at_end(void (*function)(void));

static void (*at_end)(void);

void guest_at_end(void (*function)(void)) { at_end = function; }

__attribute__((destructor)) static void destroy(void)
{
    if (at_end) {
        at_end();
    }
}
