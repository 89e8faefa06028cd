#ifndef NO_FRAMES
#include <execinfo.h>
#else
#define backtrace(frames, count) (*(frames) = 0, (count))
#endif

int trap_version(int *version)
{
    *version = 1050;
    return 0;
}

#define DIGITS(null) (null ? -1 : (((a * 10 + b) * 10 + c) * 10 + d) * 10 + e)

long trap_at0(void *null, long a, long b, long c, long d, long e) { return DIGITS(null); }
long trap_at1(long a, void *null, long b, long c, long d, long e) { return DIGITS(null); }
long trap_at2(long a, long b, void *null, long c, long d, long e) { return DIGITS(null); }
long trap_at3(long a, long b, long c, void *null, long d, long e) { return DIGITS(null); }
long trap_at4(long a, long b, long c, long d, void *null, long e) { return DIGITS(null); }
long trap_at5(long a, long b, long c, long d, long e, void *null) { return DIGITS(null); }

int trap_frames(void *null, void **frames, int count) { return null ? -1 : backtrace(frames, count); }

int trap_moved(void *null) { return null ? -1 : 0; }
int trap_moved_v2(void *null, int value) { return null ? -1 : value; }
int trap_never(void *null) { return null ? -1 : 0; }

int trap_renamed(void) { return -1; }
int trap_renamed_old(void) { return 6; }
int trap_refused(void) { return -1; }
