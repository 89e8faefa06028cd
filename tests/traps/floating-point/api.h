/* The control bits of the floating-point units: rounding, denormals, precision. */
struct control { unsigned main, x87; };

static inline struct control control(void)
{
    struct control control = {0, 0};
#ifdef __x86_64__
    unsigned short word;
    __asm__ volatile("stmxcsr %0" : "=m"(control.main));
    __asm__ volatile("fnstcw %0" : "=m"(word));
    control.main &= 0xffc0; /* the low bits are status flags */
    control.x87 = word;
#else
    unsigned long word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    control.main = (unsigned)word;
#endif
    return control;
}

static inline void set_control(struct control control)
{
#ifdef __x86_64__
    unsigned short word = (unsigned short)control.x87;
    __asm__ volatile("ldmxcsr %0" ::"m"(control.main));
    __asm__ volatile("fldcw %0" ::"m"(word));
#else
    unsigned long word = control.main;
    __asm__ volatile("msr fpcr, %0" ::"r"(word));
#endif
}

/* The control bits that the library's function sees. */
struct control trap_control(void);
/* Divides in the library. */
double trap_divide(double a, double b);
long double trap_divide_long(long double a, long double b);
