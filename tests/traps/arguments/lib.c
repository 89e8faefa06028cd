#include "api.h"

long trap_many(int a0, long a1, short a2, char a3, double d0, long a4, float f0, long a5, long a6,
               long a7, double d1, double d2, double d3, double d4, double d5, double d6, double d7,
               double d8, long a8, long a9, unsigned char a10, long a11, double d9, long a12)
{
    double weighted = d0 + 2 * (double)f0 + 3 * d1 + 4 * d2 + 5 * d3 + 6 * d4 + 7 * d5 + 8 * d6 + 9 * d7 +
                      10 * d8 + 11 * d9;
    return a0 + 2 * a1 + 3 * a2 + 4 * a3 + 5 * a4 + 6 * a5 + 7 * a6 + 8 * a7 + 9 * a8 + 10 * a9 + 11 * a10 +
           12 * a11 + 13 * a12 + (long)weighted;
}

long trap_structs(struct two_words a, struct mixed b, struct floats c, struct large d, struct small e,
                  struct two_words f, struct mixed g)
{
    return a.a + 2 * a.b + 3 * (long)b.x + 4 * b.n + 5 * (long)(c.x + 2 * c.y + 3 * c.z + 4 * c.w) +
           6 * d.value[0] + 7 * d.value[8] + 8 * e.letters[0] + 9 * e.letters[2] + 10 * f.a + 11 * f.b +
           12 * (long)g.x + 13 * g.n;
}

struct large trap_make_large(long seed, struct large other)
{
    for (int i = 0; i < 9; i++) {
        other.value[i] += seed * i;
    }
    return other;
}

struct mixed trap_make_mixed(double x, long n) { return (struct mixed){x * 2, n * 3}; }

struct floats trap_make_floats(float x, struct floats other)
{
    return (struct floats){x + other.w, x + other.z, x + other.y, x + other.x};
}

long double trap_long_double(long double a, int n, long double b) { return a * n - b; }

#ifdef __SIZEOF_INT128__
__int128 trap_int128(__int128 a, int n, __int128 b) { return a * n + b; }
#endif

double complex trap_complex(double complex a, float complex b) { return a * b; }

long double complex trap_long_complex(long double complex a) { return a * I; }

float trap_float(float x) { return x / 2; }

_Bool trap_bool(signed char c, _Bool b) { return c < 0 && b; }
