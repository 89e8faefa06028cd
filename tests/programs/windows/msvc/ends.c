/* A program, or with -DPLUGIN a DLL that it loads: both call a stub, and again at their end. */
void *LoadLibraryA(const char *file);
int (*GetProcAddress(void *library, const char *name))(void);
int _write(int file, const void *data, unsigned size);
unsigned long long strlen(const char *text);
int atexit(void (*function)(void));

int trap_value(void);

#ifdef PLUGIN
#define NAME "plugin"
#else
#define NAME "program"
#endif

static void show(const char *when)
{
    const char *result = trap_value() == 42 ? ": 42\n" : ": another value\n";
    _write(1, when, (unsigned)strlen(when));
    _write(1, result, (unsigned)strlen(result));
}

static void end(void) { show(NAME " ends"); }

/* As compilers of C++ register destructors. */
static void initialize(void) { atexit(end); }
__attribute__((section(".CRT$XCU"), used)) static void (*const initializer)(void) = initialize;

#ifdef PLUGIN
__declspec(dllexport) int plugin(void)
{
    show(NAME);
    return 0;
}
#else
int main(void)
{
    GetProcAddress(LoadLibraryA("plugin.dll"), "plugin")();
    show(NAME);
    return 0;
}
#endif
