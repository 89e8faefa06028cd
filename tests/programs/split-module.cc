// Definitions that cannot be in different members: local ones, COMDATs, aliases, constructors, addresses of blocks.
extern "C" int printf(const char *, ...);
struct Shape { virtual ~Shape() {} virtual int area() const { return 0; } int x; };
struct Square : Shape { int area() const override { return x * x; } };
template <class T> inline T twice(T a) { static T last; T l = last; last = a; return a + a + l; }
inline int shared(int x) { return x ? twice(x) : twice(3.0f); }
static int counter;
static int bump(int by) { return counter += by; }
static const int table[4] = {1, 2, 3, 4};
int global_value = 5;
thread_local int per_thread = 1;
static int initialised = printf("constructor\n");
__attribute__((constructor)) static void registered() { bump(100); }
__attribute__((used, section("registry"))) static int entry = 7;
extern "C" {
int first(int x) { return bump(x) + table[x & 3]; }
int second(int x) { return shared(x) + global_value + per_thread; }
__attribute__((noinline)) int third(int x) { if (x > 2) throw x; return initialised; }
int fourth(int x) { try { return third(x); } catch (int y) { return y; } }
int fifth(int x) { Square s; s.x = x; Shape *p = &s; return p->area() + printf("%d\n", x); }
__attribute__((weak)) int sixth(int x) { return first(x) - second(x); }
int alias_of_first(int) __attribute__((alias("first")));
int eighth(int x) { static void *labels[] = {&&a, &&b}; goto *labels[x & 1]; a: return 1; b: return printf("b"); }
int ninth(int x) { printf("a long text of a format %d\n", x); return alias_of_first(x); }
static int (*resolve())(int) { return second; }
int chosen(int) __attribute__((ifunc("_ZL7resolvev")));
}
