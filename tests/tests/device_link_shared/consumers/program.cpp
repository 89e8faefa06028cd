#include <cstdio>

// The sum of the status of each function.
#define CALL(name) extern "C" int name();
#include CALLS
#undef CALL

int main()
{
    int status = 0;
#define CALL(name) status |= name();
#include CALLS
    return std::printf("status %d\n", status), 0;
}
