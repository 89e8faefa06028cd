/* loader.c: functions that newer versions of glibc export under newer versions, so that an object linked there
 * does not start on older systems: dlopen and its siblings are GLIBC_2.34, stat is GLIBC_2.33.
 *
 * The functions of the loader are found at run time, in the images of the process, by their order as the
 * loader does. A reference to the old version (.symver) would need libdl.so.2 among the needed libraries for
 * glibc before 2.34, and since then no linker adds it; and it does not link with a static glibc. */
#include "internal.h"

#ifdef __GLIBC__
#include "dynamic.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __loongarch__
/* The kernel's struct is glibc's on 64-bit machines; on others its second one, for 64-bit offsets. */
#ifndef SYS_newfstatat
#define SYS_newfstatat SYS_fstatat64
#endif
#ifdef SYS_fstat64
#define SYS_FSTAT SYS_fstat64
#else
#define SYS_FSTAT SYS_fstat
#endif

int file_status(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

int open_file_status(int file, struct stat *status)
{
    return (int)syscall(SYS_FSTAT, file, status);
}
#endif

#ifndef GPUSTUB_LINK_LOADER

enum { DLOPEN, DLSYM, DLVSYM, DLINFO, DLERROR, LIBC_DLOPEN, LOADER_FUNCTIONS };
static const char *const function_names[LOADER_FUNCTIONS] = {
    "dlopen", "dlsym", "dlvsym", "dlinfo", "dlerror", "__libc_dlopen_mode",
};
static void *functions[LOADER_FUNCTIONS]; /* atomic; NULL: not found */

/* Stops at the image that has the last of the functions, since the tables of each cost time: before the libraries
 * that were opened at run time. */
static int visit_functions(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct dynamic image = dynamic_of(info);
    void **found = context;
    int is_complete = 1;
    (void)size;
    for (int i = 0; i < LOADER_FUNCTIONS; i++) {
        const ElfW(Sym) *symbol = found[i] ? NULL : find_entry(&image, function_names[i], 0);
        if (symbol)
            found[i] = to_pointer((uintptr_t)(info->dlpi_addr + symbol->st_value));
        is_complete &= found[i] || i == LIBC_DLOPEN;
    }
    return is_complete;
}

/* Looks the functions up; all threads find the same. */
static void find_functions(void)
{
    void *found[LOADER_FUNCTIONS] = {NULL};
    dl_iterate_phdr(visit_functions, found);
    if (!found[DLOPEN] && found[LIBC_DLOPEN]) {
        /* Before glibc 2.34, and nothing in the process needs libdl: libc's own dlopen, of that time. */
        void *(*libc_dlopen)(const char *, int);
        memcpy(&libc_dlopen, &found[LIBC_DLOPEN], sizeof libc_dlopen);
        libc_dlopen("libdl.so.2", (int)(RTLD_LAZY | 0x80000000)); /* __RTLD_DLOPEN */
        dl_iterate_phdr(visit_functions, found);
    }
    for (int i = 0; i < LOADER_FUNCTIONS; i++)
        if (found[i])
            STORE_RELEASE(&functions[i], found[i]);
}

/* Writes the address of a function to a pointer. Returns 0 if there is none, in a static program. */
static int get_function(int index, void *pointer)
{
    void *function = LOAD_ACQUIRE(&functions[index]);
    if (!function) {
        find_functions();
        function = LOAD_ACQUIRE(&functions[index]);
    }
    memcpy(pointer, &function, sizeof function);
    return function != NULL;
}

void *loader_dlopen(const char *file, int mode)
{
    void *(*function)(const char *, int);
    return get_function(DLOPEN, &function) ? function(file, mode) : NULL;
}

void *loader_dlsym(void *handle, const char *name)
{
    void *(*function)(void *, const char *);
    return get_function(DLSYM, &function) ? function(handle, name) : NULL;
}

void *loader_dlvsym(void *handle, const char *name, const char *version)
{
    void *(*function)(void *, const char *, const char *);
    return get_function(DLVSYM, &function) ? function(handle, name, version) : NULL;
}

int loader_dlinfo(void *handle, int request, void *result)
{
    int (*function)(void *, int, void *);
    return get_function(DLINFO, &function) ? function(handle, request, result) : -1;
}

/* Returns the address of the process's dlsym; 0: there is none. */
uintptr_t address_of_dlsym(void)
{
    uintptr_t address;
    return get_function(DLSYM, &address) ? address : 0;
}

char *loader_dlerror(void)
{
    static char none[] = "a static program: build the stubs with -DGPUSTUB_LINK_LOADER=1";
    char *(*function)(void);
    return get_function(DLERROR, &function) ? function() : none;
}

#endif
#endif
