/* shared.h: declarations shared by the run time, the trampolines and the generated tables. Internal.
 *
 * gpustub_table.inc       functions, as X-macros, included by asm/<arch>.S
 * gpustub_libraries.inc   description of each library, as C data, included by runtime.c
 *
 * Names with external linkage start with gpustub1_: the 1 is the version of this interface. All
 * other names belong to the one translation unit of runtime.c, and have no prefix. */
#ifndef GPUSTUB_SHARED_H
#define GPUSTUB_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "gpustub.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* ---- functions: written by the trampolines -------------------------------------------------- */

/* A function of the image. Both offsets are relative to their own address, so that a stub costs
 * one dynamic relocation. */
struct slot {
    void *target;  /* jump target of the trampoline: its own thunk, or the real function once bound */
    int32_t info;  /* -> struct slot_info */
    int32_t thunk; /* -> the thunk, which enters gpustub1_slow */
};

/* Not aligned: read the spec with slot_spec(). */
struct slot_info {
    uint8_t spec[2]; /* index into the library's specs, in the target's byte order */
    uint8_t library; /* index into libraries */
    char name[];     /* of some functions with a struct adapter behind its NUL */
};

/* Adapter thunk of a function that some version of the library has with one argument more. Both
 * offsets are relative to their own address, which is not aligned. */
struct adapter {
    int32_t code;   /* -> the thunk: makes the argument NULL and goes on to *target */
    int32_t target; /* -> void *, on the slots' pages: the library's function, once bound */
};

/* Argument registers as the trampoline saved them. */
#if defined(__x86_64__)
#define REGISTER_ARGS 6
#elif defined(__aarch64__)
#define REGISTER_ARGS 8
#endif
struct frame {
    uintptr_t reg[REGISTER_ARGS]; /* integer argument registers in order */
    uintptr_t indirect;           /* the hidden result pointer (x86-64: same as reg[0]) */
    uintptr_t *stack;             /* the first argument on the caller's stack */
    uintptr_t result;             /* returned if there is no function to jump to */
    uintptr_t observe;            /* not 0: call the function from here, and report its result */
};

/* Called by gpustub1_slow with every argument register saved. Returns where to jump, or NULL
 * after storing frame->result. */
HIDDEN void *gpustub1_enter(struct slot *slot, struct frame *frame);

/* Called by gpustub1_slow when an observed function has returned. */
HIDDEN void gpustub1_returned(const struct frame *frame, uintptr_t result);

/* All slots of the image; the pages between hold nothing else. */
extern struct slot gpustub1_slots_first[] HIDDEN, gpustub1_slots_last[] HIDDEN;

/* ---- libraries: written by the generator ---------------------------------------------------- */

/* Limits that the generator keeps too: gpustub_libraries.inc asserts that both sides agree. */
enum {
    MAX_LIBRARIES = 127,
    MAX_PREFIX_LENGTH = 64,  /* version_probe.prefix */
    MAX_HOOK_ARGS = 12,      /* spec.hook_args */
    MAX_ADAPTER_ARGS = 6,    /* of a function with an adapter; all of them are in registers */
    MAX_OUT_PARAM_ARG = 63,  /* out_param.arg */
    MAX_OUT_PARAM_SIZE = 65535
};
_Static_assert(MAX_LIBRARIES <= INT8_MAX, "slot_info.library and library.driver hold any index");
_Static_assert(MAX_ADAPTER_ARGS <= REGISTER_ARGS, "adapters move registers only");
_Static_assert(MAX_OUT_PARAM_SIZE <= UINT16_MAX, "out_param.size holds any size");

/* A file name to load. The major is the toolkit's, unless the library has majors of its own; 0:
 * unversioned. */
struct load_name {
    int32_t major;
    const char *name;
};

/* Where a file has the major of its toolkit: right after the prefix. */
enum version_probe_kind {
    PROBE_NEEDED, /* in a DT_NEEDED name */
    PROBE_RODATA  /* in .rodata */
};

struct version_probe {
    uint8_t kind;
    const char *prefix;  /* NULL ends a list */
    const char *sibling; /* read from the file of this name, up to .so, beside it; NULL: from itself */
};

enum role { ROLE_DRIVER, ROLE_TOOLKIT, ROLE_LOADER };
enum version_encoding { ENCODING_NONE, ENCODING_CUDA, ENCODING_PAIR, ENCODING_HIP };

enum returns {
    RETURNS_STATUS,       /* the library's code for the reason */
    RETURNS_VALUE,        /* spec.value */
    RETURNS_STRING,       /* library.string */
    RETURNS_NULL,
    RETURNS_VOID,
    RETURNS_ZEROED_STRUCT /* spec.value bytes of zero through the hidden result pointer */
};

enum out_kind { OUT_ZERO, OUT_STATUS, OUT_STRING };

struct out_param {
    uint8_t arg;
    uint8_t kind;
    uint16_t size; /* OUT_ZERO: number of bytes */
};

/* Entry of the ABI table: the function bound in a library whose version lies in [from, below), in
 * place of the function's own name. It has there the ABI that the program's headers declare. */
struct abi_entry {
    int32_t from, below;
    const char *name; /* NULL: refuse */
};

/* Functions that compilers call before main, for each module with device code. */
enum hook {
    HOOK_NONE,
    HOOK_OPEN,        /* handle f(fatbin): opens a module */
    HOOK_RECORD,      /* void f(handle, ...): registers something with it */
    HOOK_CLOSE,       /* void f(handle): closes it; never loads the library */
    HOOK_CALL,        /* f(handle, ...): a real call */
    HOOK_COPY_THROUGH /* f(out, in): where the library lacks it, *out = in */
};

struct spec {
    uint8_t returns;
    uint8_t out_params_len, abi_entries_len;
    uint8_t has_status_if_missing; /* status_if_missing replaces library_missing */
    uint8_t hook;
    uint8_t hook_args;             /* number of integer arguments of a hook */
    uint8_t adapted;               /* number of ABI entries, the first ones, whose function takes one
                                      argument more */
    uint8_t null_argument;         /* index of that argument; it is NULL */
    uint16_t out_params;           /* first of out_params_len in library.out_params */
    uint16_t abi_entries;          /* first of abi_entries_len in library.abi_entries; they do not
                                      overlap */
    int32_t value;
    int32_t status_if_missing;
    const char *symbol_version;    /* ELF symbol version to bind; NULL: the default version */
    const char *fallback_symbol;   /* bound where the library lacks the function; NULL: nothing */
};

struct library {
    const char *id;           /* "cudart" */
    const char *title;        /* "CUDA runtime" */
    const char *override_env; /* "GPUSTUB_CUDART_PATH" */
    const char *string;       /* result of string functions when unavailable */
    uint8_t role;
    uint8_t family;           /* libraries of one family share one major and root; 0: none */
    uint8_t version_encoding; /* of version_function */
    uint8_t independent_major; /* majors of load names are the library's own, not its toolkit's */
    int8_t driver;            /* index of the driver that limits the majors; -1: none */
    int32_t library_missing, missing, refused, unloading; /* status codes */
    int32_t header_version;   /* of the program's headers, as 1000 * major + 10 * minor;
                                 0: not declared */
    int32_t newest_major;     /* the newest major that the manifest knows; 0: none */
    int32_t min_version;      /* 0: none */
    const char *version_function;               /* NULL: none */
    const struct load_name *load_names;         /* in order of preference, unversioned last; ends
                                                   with the name NULL */
    const char *const *required_functions;      /* NULL ends each of these lists */
    const char *const *search_dirs;             /* absolute, or starting with $ORIGIN */
    const char *const *wheel_dirs;              /* below a site-packages directory */
    const char *const *root_env;                /* environment variables that name a toolkit root */
    const char *const *roots;                   /* well-known toolkit roots; one * in the last component */
    const char *const *root_subdirs;            /* below a root */
    const char *const *dirs_before_loader;      /* before the loader's own search */
    const char *const *dirs_after_loader;
    const char *const *preload;                 /* file-name prefixes of siblings to load too */
    const struct version_probe *version_probes; /* not empty: two toolkits share a load name, and the
                                                   first of these that is there tells which it is */
    const struct spec *specs;
    const struct out_param *out_params;
    const struct abi_entry *abi_entries;
    struct slot *first, *last; /* its slots; both NULL for a library that is only asked for its version */
};

#endif
