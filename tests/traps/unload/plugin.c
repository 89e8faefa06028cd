/* An image with stubs of its own, which the program opens and closes. */
#include "gpustub.h"

int trap_add(int a, int b);
void guest_keep(const char *text);

int plugin_run(int keep);
int plugin_run(int keep)
{
    const char *report;
    int sum = trap_add(40, 2);
    report = gpustub_report("trap");
    if (!report || !gpustub_reason("trap"))
        return -1;
    if (keep)
        guest_keep(report);
    return sum;
}
