/* crt.c: the part of MSVC's C run time that is linked into programs, as far as Rust's standard library needs it. The rest
 * is in ucrtbase.dll and vcruntime140.dll. Microsoft alone distributes the real one. */
typedef void (*function)(void);
typedef void (*tls_callback)(void *module, unsigned long reason, void *reserved);

#define IN(name) __attribute__((section(name), used))

__declspec(dllimport) int _configure_narrow_argv(int mode);
__declspec(dllimport) int *__p___argc(void);
__declspec(dllimport) char ***__p___argv(void);
__declspec(dllimport) int _crt_atexit(function end);
__declspec(dllimport) int _initialize_onexit_table(void *table);
__declspec(dllimport) int _register_onexit_function(void *table, function end);
__declspec(dllimport) int _execute_onexit_table(void *table);
__declspec(dllimport) void exit(int code);
int main(int argc, char **argv) __attribute__((weak)); /* of programs */

/* Initializers, and callbacks of threads: linkers sort what is between. */
IN(".CRT$XCA") static const function first_initializer;
IN(".CRT$XCZ") static const function last_initializer;
IN(".CRT$XLA") static const tls_callback first_callback;
IN(".CRT$XLZ") static const tls_callback last_callback;

/* IMAGE_TLS_DIRECTORY64 (PE Format, "The .tls Section"). */
IN(".tls") static char tls_start[1];
IN(".tls$ZZZ") static char tls_end[1];
int _tls_index;
IN(".rdata$T") const struct {
    const void *start, *end, *index, *callbacks;
    unsigned zeros, flags;
} _tls_used = {tls_start, tls_end, &_tls_index, &first_callback + 1, 0, 0};

/* The compiler refers to these in programs with floating-point numbers, protected stacks, and exceptions. */
int _fltused = 1;
unsigned long long __security_cookie = 0x2b992ddfa232;
void __security_check_cookie(unsigned long long cookie) { (void)cookie; }
const void *const type_info_table[2] __asm__("??_7type_info@@6B@");

/* What a DLL registers is called at its own end. */
static struct {
    function *first, *last, *end;
} table;
static int is_dll;

int atexit(function end)
{
    return is_dll ? _register_onexit_function(&table, end) : _crt_atexit(end);
}

static void initialize(void)
{
    for (const function *initializer = &first_initializer; initializer < &last_initializer; initializer++)
        if (*initializer)
            (*initializer)();
}

int _DllMainCRTStartup(void *module, unsigned long reason, void *reserved)
{
    enum { DETACH, ATTACH };
    (void)module, (void)reserved;
    if (reason == ATTACH) {
        is_dll = 1;
        _initialize_onexit_table(&table);
        initialize();
    }
    if (reason == DETACH)
        _execute_onexit_table(&table);
    return 1;
}

void mainCRTStartup(void)
{
    initialize();
    _configure_narrow_argv(1);
    exit(main(*__p___argc(), *__p___argv()));
}

/* Touches the pages of a frame of rax bytes, in order, and changes no register. */
__asm__(".globl __chkstk\n"
        "__chkstk:\n"
        "  pushq %r10\n"
        "  pushq %rax\n"
        "  leaq 24(%rsp), %r10\n"
        "1: subq $0x1000, %rax\n"
        "  jb 2f\n"
        "  subq $0x1000, %r10\n"
        "  orb $0, (%r10)\n"
        "  jmp 1b\n"
        "2: popq %rax\n"
        "  popq %r10\n"
        "  ret\n");
