/* Every way in which ABIs pass arguments and results. */
#include <complex.h>

struct two_words { long a, b; };
struct mixed { double x; long n; };
struct floats { float x, y, z, w; };
struct large { long value[9]; };
struct small { char letters[3]; };

long trap_many(int a0, long a1, short a2, char a3, double d0, long a4, float f0, long a5, long a6,
               long a7, double d1, double d2, double d3, double d4, double d5, double d6, double d7,
               double d8, long a8, long a9, unsigned char a10, long a11, double d9, long a12);
long trap_structs(struct two_words a, struct mixed b, struct floats c, struct large d, struct small e,
                  struct two_words f, struct mixed g);
struct large trap_make_large(long seed, struct large other);
struct mixed trap_make_mixed(double x, long n);
struct floats trap_make_floats(float x, struct floats other);
long double trap_long_double(long double a, int n, long double b);
#ifdef __SIZEOF_INT128__
__int128 trap_int128(__int128 a, int n, __int128 b);
#endif
double complex trap_complex(double complex a, float complex b);
long double complex trap_long_complex(long double complex a);
float trap_float(float x);
_Bool trap_bool(signed char c, _Bool b);
