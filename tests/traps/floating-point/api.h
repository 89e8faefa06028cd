/* The control bits of the floating-point units: rounding, denormals, precision. The low bits of some registers
 * are status flags. */
struct control { unsigned main, x87; };

static inline struct control control(void)
{
    struct control control = {0, 0};
#if defined(__x86_64__) || defined(__i386__)
    unsigned short word;
#ifdef __SSE__
    __asm__ volatile("stmxcsr %0" : "=m"(control.main));
    control.main &= 0xffc0;
#endif
    __asm__ volatile("fnstcw %0" : "=m"(word));
    control.x87 = word;
#elif defined(__aarch64__)
    unsigned long word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    control.main = (unsigned)word;
#elif defined(__arm__)
    __asm__ volatile("vmrs %0, fpscr" : "=r"(control.main));
    control.main &= 0x07f79f00;
#elif defined(__riscv)
    __asm__ volatile("frrm %0" : "=r"(control.main));
#elif defined(__powerpc64__)
    double word;
    __asm__ volatile("mffs %0" : "=f"(word));
    unsigned long bits;
    __builtin_memcpy(&bits, &word, sizeof bits);
    control.main = bits & 0xff;
#elif defined(__s390x__)
    __asm__ volatile("efpc %0" : "=d"(control.main));
    control.main &= 0xff0000ff;
#elif defined(__loongarch__)
    __asm__ volatile("movfcsr2gr %0, $fcsr3" : "=r"(control.main));
#endif
    return control;
}

static inline void set_control(struct control control)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned short word = (unsigned short)control.x87;
#ifdef __SSE__
    __asm__ volatile("ldmxcsr %0" ::"m"(control.main));
#endif
    __asm__ volatile("fldcw %0" ::"m"(word));
#elif defined(__aarch64__)
    unsigned long word = control.main;
    __asm__ volatile("msr fpcr, %0" ::"r"(word));
#elif defined(__arm__)
    __asm__ volatile("vmsr fpscr, %0" ::"r"(control.main));
#elif defined(__riscv)
    __asm__ volatile("fsrm %0" ::"r"(control.main));
#elif defined(__powerpc64__)
    unsigned long bits = control.main;
    double word;
    __builtin_memcpy(&word, &bits, sizeof word);
    __asm__ volatile("mtfsf 0xff, %0" ::"f"(word));
#elif defined(__s390x__)
    __asm__ volatile("sfpc %0" ::"d"(control.main));
#elif defined(__loongarch__)
    __asm__ volatile("movgr2fcsr $fcsr3, %0" ::"r"(control.main));
#endif
}

/* The control bits that the library's function sees. */
struct control trap_control(void);
/* Divides in the library. */
double trap_divide(double a, double b);
long double trap_divide_long(long double a, long double b);
