/* As tests/traps/adapted, without what needs another system. */
#include <string.h>

#include "check.h"
#include "gpustub.h"

long trap_at0(long, long, long, long, long);
long trap_at1(long, long, long, long, long);
long trap_at2(long, long, long, long, long);
long trap_at3(long, long, long, long, long);
long trap_at4(long, long, long, long, long);
long trap_at5(long, long, long, long, long);
int trap_moved(int value);
int trap_renamed(void);
int trap_refused(void);

int main(void)
{
    FIRST_AND_WARM(CHECK(trap_at0(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at1(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at2(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at3(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at4(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_at5(1, 2, 3, 4, 5) == 12345));
    FIRST_AND_WARM(CHECK(trap_moved(5) == 5));
    FIRST_AND_WARM(CHECK(trap_renamed() == 6));
    FIRST_AND_WARM(CHECK(trap_refused() == 77));
    const char *report = gpustub_report("trap");
    CHECK(strstr(report, "\n  bound: trap_renamed as trap_renamed_old\n"));
    CHECK(strstr(report, "\n  adapted: trap_at0 with NULL as argument 0, trap_at1 with"));
    CHECK(strstr(report, "trap_moved as trap_moved_v2 with NULL as argument 0"));
    CHECK(strstr(report, "\n  refused: trap_refused ("));
    PASSED();
}
