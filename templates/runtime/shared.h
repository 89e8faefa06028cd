/* shared.h: declarations shared by the run time, the trampolines and the generated tables. Internal.
 *
 * gpustub_table.inc       functions, as X-macros, included by asm/<arch>.S
 * gpustub_libraries.inc   description of each library, as C data, included by libraries.c
 *
 * Several packages may bring stubs into one image. Linkers merge their objects: of each function, the first
 * section group remains; of each name with external linkage, the first weak definition. The rest is
 * static, and is dropped with the entry points that used it. So what runs is one run time, over the parts
 * of all objects.
 *
 * Names with external linkage start with gpustub1_. A link with another version of this interface, which
 * comprises the structs of this file, `struct library_state` and `struct family`, the entry points, and the
 * pages of the slots, fails by a mark (elf_table.h). All other names belong to the one translation unit of
 * runtime.c, and have no prefix. */
#ifndef GPUSTUB_SHARED_H
#define GPUSTUB_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "frame.h"
#include "gpustub.h"

/* In the one translation unit of runtime.c no internal name has external linkage. So none collides with a
 * name of the program, and the run times of several packages share the entry points only. Each file also
 * compiles alone, for checks; such an object is not for linking. */
#ifdef SINGLE_UNIT
#define INTERNAL static
#else
#define INTERNAL HIDDEN
#endif

/* ---- functions: written by the trampolines -------------------------------------------------- */

/* A function of the image. Both offsets are relative to the slot, so that a stub costs one dynamic
 * relocation. 16 bytes on all machines. */
struct slot {
    _Alignas(8) void *target; /* jump target of the trampoline: its own thunk, or the real function once bound */
    int32_t info; /* -> struct slot_info */
    int32_t code; /* atomic: -> the trampoline, in the low bits the enum reason that binding found */
}; /* of HOOK_DATA: the target is the object, and code -> its last value */

/* Reason why a call has no function to jump to. */
enum reason { REASON_NONE, LIBRARY_MISSING, FUNCTION_MISSING, FUNCTION_REFUSED, UNLOADING };
_Static_assert((int)UNLOADING <= SLOT_REASON, "a slot holds any reason");

/* Not aligned: read the spec with slot_spec(). */
struct slot_info {
    uint8_t spec[2]; /* index into the specs of the part's library, in the target's byte order */
    char name[];     /* followed by a struct adapter_list, for functions with adapters; or by the distance to
                        the names of status codes, for spec.names_errors */
};

/* Slots of one library in one object. Linkers concatenate the parts of all objects. */
struct part {
    const struct library *library;  /* NULL: a placeholder */
    struct slot *first, *last;      /* bounds of the slots; equal if there are none */
    char *pages_first, *pages_last; /* bounds of the object's slots; Windows: no other data is on their pages */
    uint32_t *counts;               /* atomic: calls of each slot, while tracing */
};
extern struct part FIRST_PART[] HIDDEN, END_OF_PARTS[] HIDDEN;

/* The placeholder: an image in which no function is used has no other part, and linkers define the bounds
 * of an existing section only. */
extern struct part gpustub1_no_part[] HIDDEN;

/* Distance to the parts of an object. Code that refers to it keeps them (elf_table.h). */
extern const int32_t gpustub1_own_parts HIDDEN;

/* Adapters of a function. All offsets are relative to their own address, which is not aligned. */
struct adapter_list {
    int32_t targets; /* -> void *[MAX_TARGETS], beside the slots: functions of the library, once bound */
    int32_t code[];  /* -> by the kind of the ABI entry: a thunk, which inserts the argument NULL and jumps to
                        the first target, or a struct adapter */
};

/* Adapter in C (adapters.h). */
enum { MAX_TARGETS = 4 };
struct adapter {
    void (*entry)(void);
    const char *limit;                    /* the only calls that are adapted; NULL: all */
    const char *targets[MAX_TARGETS - 1]; /* the targets after the first; NULL ends them */
};

/* Argument registers as the trampoline saved them. Read by argument(), which also knows the stack. */
struct frame {
    uintptr_t reg[REGISTER_ARGS]; /* integer argument registers in order */
    uintptr_t indirect;           /* AArch64: the hidden result pointer, elsewhere the first argument.
                                     i386: whether the function would remove it from the stack */
    uintptr_t *stack;             /* the first argument on the caller's stack */
    uintptr_t result;             /* returned if there is no function to jump to */
    struct observed_call *observe; /* not NULL: the result of the call is reported */
    struct part *part;            /* the part of the slot */
};

/* Called by gpustub1_slow with every argument register saved. Returns the jump target, or NULL
 * after storing frame->result. */
MERGED void *gpustub1_enter(struct slot *slot, struct frame *frame);

/* A call whose result is reported, or after which data is copied. */
struct observed_call {
    OBSERVED_FRAME
    const struct slot *slot;
    const struct spec *spec;
    char is_reported;
};

/* Called by gpustub1_slow when an observed function has returned. Frees the record, which stays allocated if
 * the function does not return (longjmp, an exception). */
MERGED void gpustub1_returned(struct observed_call *call, uintptr_t result);

/* At exit, after the image's other destructors (101 is the last priority open to programs), the
 * assembly sets gpustub1_exiting and calls gpustub1_on_exit unless it is NULL. A pointer, because the table
 * of destructors is a root of the linker's garbage collection: a program that uses no stub then contains
 * no run time. */
extern char gpustub1_exiting HIDDEN;            /* atomic */
extern void (*gpustub1_on_exit)(void) HIDDEN; /* atomic */

/* ---- queries across images: query.c ---------------------------------------------------------- */

/* The functions of gpustub.h, for the stubs of one image. A program may come with a library of stubs that
 * was built later: members are only appended. */
struct api {
    int (*has_library)(const char *library);
    int (*load)(const char *library);
    int (*has_function)(const char *library, const char *function);
    const char *(*path)(const char *library);
    int (*version)(const char *library);
    const char *(*reason)(const char *library);
    const char *(*report)(const char *library);
    int (*counts)(const char *library, int *bound, int *refused, int *missing);
    int (*set_handle)(const char *library, void *handle);
};

/* The table of static stubs. A library of stubs exports its own under a name of its own, since two of them
 * may be in a process; GPUSTUB_EXPORT is that name. */
#ifdef GPUSTUB_EXPORT
/* Not hidden: of an undefined weak symbol that is, gold 1.16 makes an address that is not null. */
__attribute__((weak)) extern const struct api gpustub1_api;
#define GPUSTUB_JOIN(a, b) a##b
#define GPUSTUB_API_OF(name) GPUSTUB_JOIN(gpustub1_api_, name)
#define API_TABLE                                                                                  \
    extern const struct api GPUSTUB_API_OF(GPUSTUB_EXPORT);                                        \
    __attribute__((visibility("default"))) const struct api GPUSTUB_API_OF(GPUSTUB_EXPORT)
#else
DECLARE_MERGED const struct api gpustub1_api;
#define API_TABLE MERGED_DATA const struct api gpustub1_api
#endif

/* ---- libraries: written by the generator ---------------------------------------------------- */

/* Limits that the generator also keeps: gpustub_libraries.inc asserts that both sides agree. */
enum {
    MAX_PREFIX_LENGTH = 64,  /* version_probe.prefix */
    MAX_HOOK_ARGS = 12,      /* spec.hook_args */
    MAX_ADAPTER_ARGS = 6,    /* arguments of a function with an adapter thunk */
    MAX_ABI_VERSION = 65535, /* abi_entry.below */
    MAX_OUT_PARAM_ARG = 63,  /* out_param.arg */
    MAX_OUT_PARAM_SIZE = 65535
};
_Static_assert(MAX_OUT_PARAM_SIZE <= UINT16_MAX, "out_param.size holds any size");
_Static_assert(MAX_ABI_VERSION == UINT16_MAX, "abi_entry.below holds any version");

/* A file name to load. The major is the toolkit's, or the library's if independent_major is set; 0:
 * unversioned. */
struct load_name {
    int32_t major;
    const char *name;
};

/* Location of the prefix that the major of a file's toolkit follows. */
enum version_probe_kind {
    PROBE_NEEDED, /* in a DT_NEEDED name */
    PROBE_RODATA  /* in .rodata */
};

struct version_probe {
    uint8_t kind;
    const char *prefix;  /* NULL ends a list */
    const char *sibling; /* name, up to .so, of the file beside it to read; NULL: the file itself */
};

/* Files that a library opens later by a bare name. A name that ends with `.` or `_` is followed by the major: of
 * the toolkit, if the file has a directory (below a site-packages directory or toolkit root); else of the
 * library, beside which the file is. */
struct preload {
    const char *file;
    const char *functions; /* only if the program has stubs of a function with this prefix; or NULL */
};

enum role { ROLE_DRIVER, ROLE_TOOLKIT, ROLE_LOADER };
enum version_encoding {
    ENCODING_NONE,
    ENCODING_CUDA,
    ENCODING_PAIR,
    ENCODING_HIP,
    ENCODING_PROPERTY,
    ENCODING_DRIVER
};

/* Release of the toolkit to which libraries with this number of their own, or a higher one, belong. */
struct release {
    int32_t own;     /* ENCODING_PROPERTY: 1000 * major + 100 * minor + patch; ENCODING_DRIVER: the driver's branch;
                        INT32_MAX ends a list */
    int32_t version; /* 0: unknown */
};


enum returns {
    RETURNS_STATUS,       /* the library's code for the reason */
    RETURNS_VALUE,        /* spec.value */
    RETURNS_STRING,       /* library.string */
    RETURNS_NULL,
    RETURNS_VOID,
    RETURNS_ZEROED_STRUCT, /* spec.value bytes of zero through the hidden result pointer */
    RETURNS_ERROR_NAME,    /* name of the status code in argument 0 */
    RETURNS_ERROR_STRING,    /* number and name of that code */
    RETURNS_UNKNOWN_ERROR  /* 0; spec.value if that code is unknown */
};

enum out_kind {
    OUT_ZERO,
    OUT_STATUS,
    OUT_STRING,
    OUT_ERROR_NAME, /* as RETURNS_ERROR_NAME, but NULL if the code is unknown */
    OUT_ERROR_STRING
};

struct out_param {
    uint8_t arg;
    uint8_t kind;
    uint16_t size; /* OUT_ZERO: number of bytes */
};

enum abi_kind {
    ABI_BOUND,         /* `text` is a function with the ABI that the program's headers declare */
    ABI_REFUSED,       /* no function has it; `text` is the reason, or empty */
    ABI_MISSING,       /* only the function itself has it; `text` is the reason why the library lacks it */
    ABI_NULL_ARGUMENT, /* `text` is a function with one more argument, which is NULL */
    ABI_ADAPTED        /* `text` is the first target of a struct adapter */
};

/* Entry of the ABI table: function that is bound instead of the function's own name in a library whose
 * version is in [from, below). */
struct abi_entry {
    uint16_t from, below; /* MAX_ABI_VERSION: any later version */
    uint8_t kind;
    uint8_t adapter;       /* index into the adapter_list of the function */
    uint8_t null_argument; /* index of that argument */
    uint16_t text;         /* offset in library.abi_texts */
};

/* Functions that compilers call before main, for each module with device code; then those of data.c. */
enum hook {
    HOOK_NONE,
    HOOK_OPEN,        /* handle f(fatbin): opens a module */
    HOOK_RECORD,      /* void f(handle, ...): registers something with it */
    HOOK_CLOSE,       /* void f(handle): closes the module; never loads the library */
    HOOK_CALL,        /* f(handle, ...): a real call */
    HOOK_COPY_THROUGH, /* f(out, in): where the library lacks it, *out = in */
    HOOK_UPDATE,       /* a real call that may change the library's data (data.c) */
    HOOK_DATA          /* no function: the slot's target is a copy of the library's data */
};

struct spec {
    uint8_t returns;
    uint8_t out_params_len, abi_entries_len;
    uint8_t has_status_if_missing; /* status_if_missing replaces library_missing */
    uint8_t hook;
    uint8_t hook_args;             /* number of integer arguments of a hook; HOOK_UPDATE: number, from 1, of
                                      the argument that is a callback; 0: none */
    uint8_t abi_bounded;           /* refused in versions outside of library.abi_from, abi_below */
    uint8_t names_errors;          /* its slot_info refers to the names of status codes */
    uint16_t out_params;           /* first of out_params_len in library.out_params */
    uint16_t abi_entries;          /* first of abi_entries_len in library.abi_entries; they do not
                                      overlap */
    int32_t value;                 /* HOOK_DATA: number of bytes */
    int32_t status_if_missing;
    /* Offsets in library.abi_texts. */
    uint32_t symbol_version;       /* ELF symbol version to bind; 0: the default version */
    uint32_t fallback_symbol;      /* bound where the library lacks the function; 0: nothing */
};

/* A library as one package declares it. The library itself is `state`: all packages share it. */
struct library {
    struct library_state *state;  /* internal.h; never NULL */
    const struct spec *specs;
    struct library_state *driver; /* driver that limits the majors, or NULL */
    struct family *family;        /* libraries of one family share one major and root; or NULL */
    const char *id;           /* "cudart" */
    const char *title;        /* "CUDA runtime" */
    const char *override_env; /* "GPUSTUB_CUDART_PATH" */
    const char *string;       /* result of string functions when unavailable */
    const char *errors;       /* "35: cudaErrorInsufficientDriver", ...: status codes as strings, "" ends
                                 them; NULL: library_state.errors */
    uint8_t role;
    uint8_t version_encoding; /* encoding of version_function's result */
    uint8_t independent_major; /* majors of load names are the library's own, not its toolkit's */
    uint8_t stubbed;          /* 0: only its version is queried */
    int32_t status[UNLOADING]; /* status codes; the first is of LIBRARY_MISSING */
    int32_t header_version;   /* version of the program's headers, as 1000 * major + 10 * minor;
                                 0: not declared */
    int32_t newest_major;     /* the newest major that the manifest knows; 0: none */
    int32_t min_version;      /* 0: none */
    int32_t abi_from, abi_below; /* versions for which the ABI table was made */
    const char *version_function;               /* NULL: none */
    const struct release *releases;             /* ascending; of the last two encodings; NULL: the numbers are
                                                   versions */
    const struct load_name *load_names;         /* by preference, unversioned last; the name NULL
                                                   ends the list */
    const char *const *required_functions;      /* NULL ends each of these lists */
    const char *const *search_dirs;             /* absolute, or starting with $ORIGIN */
    const char *const *wheel_dirs;              /* below a site-packages directory */
    const char *const *root_env;                /* environment variables that name a toolkit root */
    const char *const *roots;                   /* well-known toolkit roots; one * in the last component */
    const char *const *root_subdirs;            /* below a root */
    const char *const *dirs_before_loader;      /* before the loader's own search */
    const char *const *dirs_after_loader;
    const struct preload *preload;              /* `file` NULL ends the list */
    const struct version_probe *version_probes; /* not empty: two toolkits share a load name; the first
                                                   probe with a result determines the toolkit */
    const struct out_param *out_params;
    const struct abi_entry *abi_entries;
    const char *abi_texts; /* names, versions and reasons in a row, the first one empty: no pointers, which would
                              cost a relocation each */
};

/* Called by gpustub1_slow for a slot with a reason, with the integer arguments saved. Stores frame->result,
 * from data alone: async-signal-safe. */
MERGED void gpustub1_answer(const struct library *library, const struct spec *spec,
                            enum reason reason, struct frame *frame);

#endif
