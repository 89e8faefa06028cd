#include "api.h"

/* Same settings as -ffast-math start-up code, and more: flush denormals, round to zero, and on x87
 * single precision. */
__attribute__((constructor)) static void disturb(void)
{
#if defined(__x86_64__) || defined(__i386__)
    set_control((struct control){0x1f80 | 0x8040 | 0x6000, 0x0c7f});
#elif defined(__aarch64__) || defined(__arm__)
    set_control((struct control){1u << 24 | 3u << 22, 0});
#elif defined(__loongarch__)
    set_control((struct control){1u << 8, 0});
#else
    set_control((struct control){1, 0}); /* RISC-V, POWER and z: round to zero */
#endif
}

struct control trap_control(void) { return control(); }
double trap_divide(double a, double b) { return a / b; }
long double trap_divide_long(long double a, long double b) { return a / b; }
