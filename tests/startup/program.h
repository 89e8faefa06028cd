/* program.h: common code of the objects of the test program. */
#include <cstdio>
#include <cstdlib>

/* Calls CUDA in a constructor if EARLY is set, and in a destructor unless QUIET is. Each object has
 * one, so that these calls run before, between and after nvcc's own code. */
struct Watcher {
    const char *name;

    explicit Watcher(const char *name) : name(name)
    {
        if (getenv("EARLY"))
            ask("early");
    }

    ~Watcher()
    {
        if (!getenv("QUIET"))
            ask("late");
    }

    void ask(const char *when) const
    {
        int count = -7;
        int status = cudaGetDeviceCount(&count);
        printf("%s %s count %d %d\n", name, when, status, count);
        printf("%s %s free %d\n", name, when, (int)cudaFree(nullptr));
        fflush(stdout);
    }
};

/* Status of a launch, by both of the functions that report it. */
static int launched(const char *name)
{
    int status = cudaGetLastError();
    printf("%s launch %d\n", name, status);
    return status;
}

int copy_second();
int launch_second();
