#include <stdarg.h>
#include <stdio.h>

#include "api.h"

#define DEFINE(i)                                                    \
    __attribute__((aligned(256))) double trap_sum##i(int count, ...) \
    {                                                                \
        double sum = i;                                              \
        va_list arguments;                                           \
        va_start(arguments, count);                                  \
        while (count-- > 0) {                                        \
            sum += va_arg(arguments, double);                        \
        }                                                            \
        va_end(arguments);                                           \
        return sum;                                                  \
    }
SIXTEEN(DEFINE)

int trap_format(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}
