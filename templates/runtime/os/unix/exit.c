/* exit.c: tells the end of the process from the end of this image. */
#include "internal.h"

#include <link.h>
#ifndef ElfW
#define ElfW(type) Elf_##type /* FreeBSD's spelling */
#endif

/* The exit hook runs in both cases, without an argument. A function that __cxa_atexit registers runs at
 * exit, before the hook of any image, or when __cxa_finalize is called with its key: dlclose does so with the
 * image's __dso_handle (Itanium C++ ABI, "DSO Object Destruction API"). note_exit has another key, and
 * so runs at exit only. The declarations have names of their own, because C reserves the real ones. */
int register_at_exit(void (*function)(void *), void *argument, void *key) __asm__("__cxa_atexit");
void run_registered(void *key) __asm__("__cxa_finalize");

static char is_registered, exit_has_begun; /* atomic */

static void note_exit(void *unused)
{
    (void)unused;
    STORE_RELEASE(&exit_has_begun, 1);
}

/* Stores whether this image is the first one, the program, which is never closed. */
static int visit_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = (uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD &&
            (uintptr_t)&gpustub1_exiting - start < segment->p_memsz)
            *(int *)context = 1;
    }
    return 1;
}

#if defined(__linux__) && !defined(__GLIBC__)
/* musl destroys the library that was opened last first: before the exit hook of the program, but after all
 * functions of atexit. The first of them runs last. */
static void (*unbind_first)(void); /* atomic */

static void unbind_before_libraries(void *unused)
{
    void (*unbind)(void) = LOAD_ACQUIRE(&unbind_first);
    (void)unused;
    if (unbind)
        unbind();
}

__attribute__((constructor(101))) static void precede_program(void)
{
    (void)register_at_exit(unbind_before_libraries, NULL, NULL);
}
#endif

/* Prepares is_closing(); called once, at the first call. */
void watch_exit(void (*unbind)(void))
{
    int is_program = 0;
#if defined(__linux__) && !defined(__GLIBC__)
    STORE_RELEASE(&unbind_first, unbind);
#else
    (void)unbind;
#endif
    dl_iterate_phdr(visit_program, &is_program);
    if (!is_program && !register_at_exit(note_exit, NULL, &exit_has_begun))
        STORE_RELEASE(&is_registered, 1);
}

/* Returns whether the image is being closed; called once, in the exit hook. If the very first call comes from
 * a destructor of another image at exit, note_exit is registered too late, and memory is freed at exit. Later
 * calls then return "unloading" without reading it. */
int is_closing(void)
{
    if (!LOAD_ACQUIRE(&is_registered) || LOAD_ACQUIRE(&exit_has_begun))
        return 0;
    run_registered(&exit_has_begun); /* removes the function, whose code is about to be unmapped */
    return 1;
}
