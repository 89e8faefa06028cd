#include <errno.h>

int trap_errno(void);

__attribute__((constructor)) static void disturb(void) { errno = ERANGE; }

int trap_errno(void) { return errno; }
