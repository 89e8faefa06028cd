/* A library that the plugin needs: its destructor runs after the plugin's exit hook. */
#include <stdio.h>
#include <string.h>

void guest_keep(const char *text);

static const char *kept;
void guest_keep(const char *text) { kept = text; }

static void destruct(void) __attribute__((destructor));
static void destruct(void)
{
    if (kept)
        puts(strstr(kept, "trap") ? "late" : "garbled");
}
