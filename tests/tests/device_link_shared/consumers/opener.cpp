#include <dlfcn.h>

extern "C" int opened_run()
{
    void *library = dlopen(LIBRARY, RTLD_NOW);
    auto run = library ? reinterpret_cast<int (*)()>(dlsym(library, "area_run")) : nullptr;
    return run ? run() : -1;
}
