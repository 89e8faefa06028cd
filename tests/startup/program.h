/* program.h: what the objects of the test program share. */
#include <cstdio>
#include <cstdlib>

/* Calls CUDA in a constructor if EARLY is set, and in a destructor unless QUIET is: each object has
 * one, so that these calls lie before, between and after what nvcc's own code does. */
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

/* What a launch says, by both of the ways in which it is asked for. */
static int launched(const char *name)
{
    int status = cudaGetLastError();
    printf("%s launch %d\n", name, status);
    return status;
}

int copy_second();
int launch_second();
