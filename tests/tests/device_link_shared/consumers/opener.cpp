#include <dlfcn.h>

extern "C" int opened_run()
{
    void *library = dlopen(LIBRARY, RTLD_NOW);
    auto run = library ? reinterpret_cast<int (*)()>(dlsym(library, FUNCTION)) : nullptr;
    return run ? run() : -1;
}
