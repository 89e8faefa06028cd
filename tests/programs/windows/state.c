/* What a first call preserves and changes: the last error, the address of the function, the protection of the slot. */
#include <windows.h>

#include "check.h"

int trap_value(void);
int imported_value(void);
void *imported_address(void);

static int (*const pointer)(void) = trap_value;

/* A trampoline begins with a jump through its slot, relative to the next instruction. */
static void *slot_of(const void *function)
{
    const unsigned char *code = function;
    int offset;
    CHECK(code[0] == 0xff && code[1] == 0x25);
    __builtin_memcpy(&offset, code + 2, sizeof offset);
    return (void *)(code + 6 + offset);
}

static DWORD protection(const void *address)
{
    MEMORY_BASIC_INFORMATION page;
    CHECK(VirtualQuery(address, &page, sizeof page) == sizeof page);
    return page.Protect;
}

int main(void)
{
    void *slot = slot_of((void *)trap_value);
    CHECK(imported_address() == (void *)trap_value);
    CHECK(protection(slot) == PAGE_READWRITE || protection(slot) == PAGE_WRITECOPY);
    SetLastError(1234);
    errno = EDOM;
    CHECK(trap_value() == EXPECTED);
    CHECK(GetLastError() == 1234 && errno == EDOM);
    CHECK(protection(slot) == PAGE_READONLY);
    CHECK(imported_value() == EXPECTED && pointer() == EXPECTED);
    CHECK(imported_address() == (void *)trap_value);
    PASSED();
}
