/* shared.h: what the run time, the trampolines and the generated tables share. Internal.
 *
 * gpustub_table.inc   functions, as X-macros, included by asm/<arch>.S
 * gpustub_libraries.inc   what is known of each library, as C data, included by runtime.c
 *
 * Names start with gpustub1_: the 1 is the version of this interface. */
#ifndef GPUSTUB_SHARED_H
#define GPUSTUB_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "gpustub.h"

#define GPUSTUB1_HIDDEN __attribute__((visibility("hidden")))

/* ---- functions: written by the trampolines -------------------------------------------------- */

/* A function of the image. Both offsets are relative to their own address, so that a stub costs
 * one dynamic relocation. */
struct gpustub1_slot {
    void *target;  /* where the trampoline jumps: its own thunk, or the real function once bound */
    int32_t info;  /* -> struct gpustub1_info */
    int32_t thunk; /* -> the thunk, which enters gpustub1_slow */
};

/* Not aligned: read the spec with gpustub1_slot_spec(). */
struct gpustub1_info {
    uint8_t spec[2]; /* index into the library's specs, in the target's byte order */
    uint8_t library; /* index into gpustub1_libraries */
    char name[];     /* of some functions with a struct gpustub1_translator behind its NUL */
};

/* Of a function that a gate gives one argument more. Both offsets are relative to their own address,
 * which is not aligned. */
struct gpustub1_translator {
    int32_t code;   /* -> what the slot leads to: makes the argument NULL and goes on to *target */
    int32_t target; /* -> void *, on the slots' pages: the library's function, once bound */
};

/* Argument registers as the trampoline saved them. */
#if defined(__x86_64__)
#define GPUSTUB1_REGS 6
#elif defined(__aarch64__)
#define GPUSTUB1_REGS 8
#endif
struct gpustub1_frame {
    uintptr_t reg[GPUSTUB1_REGS]; /* integer argument registers in order */
    uintptr_t indirect;           /* the hidden result pointer (x86-64: same as reg[0]) */
    uintptr_t *stack;             /* the first argument on the caller's stack */
    uintptr_t result;             /* what to return if there is no function to jump to */
    uintptr_t observe;            /* not 0: call the function from here, and report what it returned */
};

/* Called by gpustub1_slow with every argument register saved. Returns where to jump, or NULL
 * after storing frame->result. */
GPUSTUB1_HIDDEN void *gpustub1_enter(struct gpustub1_slot *slot, struct gpustub1_frame *frame);

/* Called by gpustub1_slow when an observed function has returned. */
GPUSTUB1_HIDDEN void gpustub1_returned(const struct gpustub1_frame *frame, uintptr_t result);

/* All slots of the image; the pages between hold nothing else. */
extern struct gpustub1_slot gpustub1_slots_first[] GPUSTUB1_HIDDEN, gpustub1_slots_last[] GPUSTUB1_HIDDEN;

/* ---- libraries: written by the generator ---------------------------------------------------- */

/* A file name to load. The major is the toolkit's, unless the library has majors of its own; 0:
 * unversioned. */
struct gpustub1_load_name {
    int32_t major;
    const char *name;
};

/* Where the major of a toolkit stands in a file: right after the prefix. */
enum {
    GPUSTUB1_TOLD_BY_NEEDED, /* in a needed name */
    GPUSTUB1_TOLD_BY_TEXT    /* in .rodata */
};

struct gpustub1_told_by {
    uint8_t how;
    const char *prefix; /* at most 64 bytes; NULL ends a list */
    const char *beside; /* in the file of this name, up to .so, beside it; NULL: in itself */
};

enum { GPUSTUB1_DRIVER, GPUSTUB1_TOOLKIT, GPUSTUB1_LOADER };                  /* role */
enum { GPUSTUB1_FORM_NONE, GPUSTUB1_FORM_CUDA, GPUSTUB1_FORM_PAIR, GPUSTUB1_FORM_HIP };
enum {                                                                        /* spec.returns */
    GPUSTUB1_STATUS, /* the library's code for the reason */
    GPUSTUB1_VALUE,  /* spec.value */
    GPUSTUB1_TEXT,   /* the library's text */
    GPUSTUB1_NULL,
    GPUSTUB1_VOID,
    GPUSTUB1_STRUCT  /* spec.value bytes of zero through the hidden result pointer */
};
enum { GPUSTUB1_OUT_ZERO, GPUSTUB1_OUT_STATUS, GPUSTUB1_OUT_TEXT };           /* out.kind */

struct gpustub1_out {
    uint8_t arg;
    uint8_t kind;
    uint16_t bytes; /* GPUSTUB1_OUT_ZERO: how many */
};

/* What is bound in a library whose version lies in [from, below), in place of the function's own
 * name: another name that means there what the program's headers mean, or nothing. */
struct gpustub1_gate {
    int32_t from, below;
    const char *name; /* NULL: refuse */
};

/* Functions that compilers call before main, for each module with device code. */
enum {
    GPUSTUB1_HOOK_NONE,
    GPUSTUB1_HOOK_OPEN,     /* handle f(fatbin): opens a module */
    GPUSTUB1_HOOK_RECORD,   /* void f(handle, ...): registers something with it */
    GPUSTUB1_HOOK_CLOSE,    /* void f(handle): closes it; never loads the library */
    GPUSTUB1_HOOK_HANDLE,   /* f(handle, ...): a real call */
    GPUSTUB1_HOOK_IDENTITY  /* f(out, in): where the library lacks it, *out = in */
};

struct gpustub1_spec {
    uint8_t returns;
    uint8_t outs_len, gates_len;
    uint8_t has_missing;  /* `missing` replaces the library's code for a missing library */
    uint8_t hook;
    uint8_t hook_args;    /* how many integer arguments a hook has */
    uint8_t translated;   /* how many of its gates, the first ones, give what takes an argument more */
    uint8_t null;         /* which one that is, from 0; it is NULL */
    uint16_t outs;        /* first of outs_len in library.outs */
    uint16_t gates;       /* first of gates_len in library.gates; they do not overlap */
    int32_t value;
    int32_t missing;
    const char *node;     /* version node to bind; NULL: the default version */
    const char *instead;  /* bound where the library lacks the function; NULL: nothing */
};

struct gpustub1_library {
    const char *id;        /* "cudart" */
    const char *title;     /* "CUDA runtime" */
    const char *variable;  /* "GPUSTUB_CUDART_PATH" */
    const char *text;      /* what string functions return when unavailable */
    uint8_t role;
    uint8_t family;        /* libraries of one family share one major and root; 0: none */
    uint8_t version_form;
    uint8_t own_majors;    /* majors of names are the library's own, not its toolkit's */
    int8_t driver;         /* index of the driver that limits the majors; -1: none */
    int32_t missing, absent, refused, unloading;  /* status codes */
    int32_t header;        /* what the program was compiled against, as 1000 * major + 10 * minor;
                              0: not declared */
    int32_t newest;        /* the newest major that the manifest knows; 0: none */
    int32_t min_version;   /* 0: none */
    const char *version_function; /* NULL: none */
    const struct gpustub1_load_name *names; /* in order of preference, unversioned last; {0, NULL} ends */
    const char *const *require;     /* NULL ends each of these lists */
    const char *const *search_dirs; /* absolute, or starting with $ORIGIN */
    const char *const *wheel_dirs;  /* below a site-packages directory */
    const char *const *variables;   /* environment variables that name a toolkit root */
    const char *const *roots;       /* well-known toolkit roots; one * in the last component */
    const char *const *root_dirs;   /* below a root */
    const char *const *dirs_first;  /* before the loader's own search */
    const char *const *dirs;        /* after it */
    const char *const *needs;       /* file-name prefixes of siblings to load too */
    const struct gpustub1_told_by *told_by; /* not empty: two toolkits share a load name, and the
                                               first of these that is there tells which it is */
    const struct gpustub1_spec *specs;
    const struct gpustub1_out *outs;
    const struct gpustub1_gate *gates;
    struct gpustub1_slot *first, *last; /* its slots; both NULL for a library that is only asked for its version */
};

#endif
