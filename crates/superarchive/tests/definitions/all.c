// Every kind of symbol that C can make, on every kind of target.
int strong = 1;
int tentative;
static int local = 2;
extern int wanted;
extern int wanted_weakly __attribute__((weak));
__attribute__((weak)) int weak_variable = 3;
__attribute__((weak)) int weak_function(void) { return 4; }
__attribute__((visibility("hidden"))) int hidden_function(void) { return 5; }
__attribute__((used)) static int kept = 6;
__attribute__((annotate("llvm.metadata"))) int annotated = 7;
int renamed(void) __asm__("as it is");
int renamed(void) { return 8; }
// Function with a body for inlining only (available_externally).
__attribute__((gnu_inline)) extern inline int available(void) { return local; }
int function(void) {
  return local + wanted + (&wanted_weakly ? 1 : 0) + kept + available();
}
#ifdef CONSTRUCTOR
__attribute__((constructor)) static void at_start(void) { ++local; }
#endif
#ifdef ALIAS
extern int other_name __attribute__((alias("strong")));
int weak_name(void) __attribute__((weak, alias("function")));
#endif
#ifdef IFUNC
static void *resolve(void) { return 0; }
int resolved(void) __attribute__((ifunc("resolve")));
#endif
#ifdef STDCALL
int __attribute__((stdcall)) standard(int a, int b) { return a + b; }
int __attribute__((fastcall)) fast(int a, int b) { return a + b; }
int __attribute__((vectorcall)) vector(int a, int b) { return a + b; }
#endif
#ifdef ASSEMBLY
__asm__(".globl from_assembly\nfrom_assembly:\n .long 0\n.globl wanted_by_assembly\n .long wanted_by_assembly\n");
#endif
