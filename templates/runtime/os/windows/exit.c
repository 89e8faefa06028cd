/* exit.c: the end of the process, or of this module: asm/<arch>_coff.S has a destructor and a TLS callback, which tells them
 * apart. */
#include "internal.h"

extern char gpustub1_closing; /* whether FreeLibrary is the reason */

void watch_exit(void (*unbind)(void))
{
    (void)unbind;
}

int is_closing(void)
{
    return gpustub1_closing;
}
