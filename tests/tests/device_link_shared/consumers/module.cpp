#define CALL(name) extern "C" int name();
#include CALLS
#undef CALL

extern "C" int module_run()
{
    int status = 0;
#define CALL(name) status |= name();
#include CALLS
    return status;
}
