/* A delayed import of the program's own beside a stub: a DLL that is there is loaded at its first call. */
#include <windows.h>

#include "check.h"

int trap_value(void);
int other_value(void);

int main(void)
{
    CHECK(!GetModuleHandleA("other.dll") && !GetModuleHandleA("trap1.dll"));
    CHECK(trap_value() == 1 && !GetModuleHandleA("other.dll"));
    CHECK(other_value() == 5 && GetModuleHandleA("other.dll"));
    CHECK(other_value() == 5 && trap_value() == 1);
    PASSED();
}
