/* What a first call preserves and changes: the last error, the address of the function, the protection of the slot. */
#include <stdint.h>
#include <windows.h>

#include "check.h"

int trap_value(void);
int imported_value(void);
void *imported_address(void);

static int (*const pointer)(void) = trap_value;

/* Slot of a trampoline. That of x86-64 begins with a jump through it, relative to the next instruction; that of ARM64 with
 * `adrp` and `ldr` (Arm ARM, C6.2). */
static void *slot_of(const void *function)
{
    const unsigned char *code = function;
#ifdef __aarch64__
    unsigned adrp, ldr;
    __builtin_memcpy(&adrp, code, sizeof adrp);
    __builtin_memcpy(&ldr, code + 4, sizeof ldr);
    CHECK((adrp & 0x9f000000) == 0x90000000 && (ldr & 0xffc00000) == 0xf9400000);
    long long pages = (int)((adrp & 0xffffe0) << 8) >> 11 | (adrp >> 29 & 3);
    return (void *)(((uintptr_t)code & ~(uintptr_t)0xfff) + (uintptr_t)(pages << 12) + (ldr >> 10 & 0xfff) * 8);
#else
    int offset;
    CHECK(code[0] == 0xff && code[1] == 0x25);
    __builtin_memcpy(&offset, code + 2, sizeof offset);
    return (void *)(code + 6 + offset);
#endif
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
