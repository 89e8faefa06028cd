#include "stack/api.h"

long trap_sum(struct wide wide, int factor)
{
    long sum = 0;
    for (int i = 0; i < 100; i++)
        sum += wide.a[i] * factor;
    return sum;
}

long trap_sum_many(int a, int b, int c, int d, int e, int f, int g, int h, struct wider wider, int last)
{
    long sum = a + b + c + d + e + f + g + h + last;
    for (int i = 0; i < 10000; i++)
        sum += wider.a[i];
    return sum;
}

int trap_answer(void) { return 42; }

int trap_call(int (*callback)(void)) { return callback() + 1; }
