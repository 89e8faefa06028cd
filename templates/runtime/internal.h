/* internal.h: what the files of the run time share among themselves.
 *
 * How threads meet (no lock is ever held, so a fork or a constructor that calls back is harmless):
 *   1. search: each thread that finds a library unsettled makes an outcome of its own;
 *   2. publish: one outcome per library wins a compare-and-swap and is never changed or freed;
 *   3. replay: one thread gives the library what start-up code registered (hook.c); others wait;
 *   4. bind: every such thread writes the slots from the winning outcome, that is, the same values;
 *   5. protect: when all libraries are bound and no thread is in 4, the slots become read-only.
 * The wait in 3 is the only one, and a child of a fork does not wait. */
#ifndef GPUSTUB_INTERNAL_H
#define GPUSTUB_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr, dlvsym, dladdr */
#endif

#include "shared.h"

/* In the one translation unit of runtime.c nothing of this has external linkage: of two run times
 * in one link, linkers then report the few names that are the interface, and lld, which shows 20
 * errors, gets to the one that says what to do. Each file also compiles alone. */
#ifdef GPUSTUB1_ONE_UNIT
#define GPUSTUB1_INTERNAL static
#else
#define GPUSTUB1_INTERNAL GPUSTUB1_HIDDEN
#endif

#define GPUSTUB1_LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define GPUSTUB1_READ(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define GPUSTUB1_STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* Text that grows; a failed allocation makes it stay as it is, never an abort. */
struct gpustub1_text {
    char *data; /* NUL-terminated, or NULL while empty */
    size_t length, capacity;
};

/* One candidate and what came of it. */
struct gpustub1_try {
    char *what; /* file, or load name and place */
    char *why;  /* why not */
};

/* The result of a search. Unchanged after publication, except for the fields marked. */
struct gpustub1_outcome {
    void *handle;    /* NULL: unavailable */
    char *path;      /* as the loader names it */
    char *found;     /* how it was found */
    char *reason;    /* why unavailable; NULL if available */
    char *root;      /* the site-packages directory or toolkit root that it lies in, or NULL */
    int32_t major;   /* that of its name: the toolkit's or the library's own; 0: unknown */
    int32_t toolkit; /* the toolkit's; 0: unknown */
    int32_t version; /* 1000 * major + 10 * minor; 0: unknown */
    int exact;       /* whether the minor part of version is known */
    int forced;      /* by an override variable or a handle of the program's own */
    struct gpustub1_try *tries;
    int tries_len, tries_cap;
    int bound, refused, absent; /* atomic; set by binding, always to the same values */
    int renamed;                /* atomic: how many of the bound under another name */
    int translated;             /* atomic: how many of the bound with an argument more */
    char is_bound;              /* atomic */
    char *report;               /* atomic, made when asked for */
};

/* An image with the soname of a library. */
struct gpustub1_loaded {
    const struct gpustub1_load_name *name; /* NULL: of a major that the manifest does not know yet */
    char *path;                            /* NULL ends a list of these */
};

/* Where one library stands. */
struct gpustub1_state {
    struct gpustub1_outcome *outcome; /* atomic */
    struct gpustub1_loaded *loaded;   /* atomic: what had been loaded before any thread searched */
    void *given;                      /* atomic: handle of the program's own */
    struct gpustub1_record *queue;    /* atomic: what hooks were given, the latest first */
    int32_t replayer_process;         /* atomic: that of the thread that replays them */
    uintptr_t replayer;               /* atomic: that thread; 0: it did not say yet */
    uint32_t *counts;                 /* atomic: calls of each slot, while tracing */
};

/* The toolkit that the first library of a family settled for. */
struct gpustub1_toolkit {
    int32_t major;
    const char *root; /* or NULL */
    const char *by;   /* id of the library */
};

/* ---- what a slot leads to; binding asks this of every function, and without optimisation only
 * what must be inlined is ---------------------------------------------------------------------- */

#define GPUSTUB1_INLINE static inline __attribute__((always_inline))

GPUSTUB1_INLINE const struct gpustub1_info *gpustub1_slot_info(const struct gpustub1_slot *slot)
{
    return (const void *)((const char *)&slot->info + slot->info);
}

GPUSTUB1_INLINE const char *gpustub1_slot_name(const struct gpustub1_slot *slot)
{
    return gpustub1_slot_info(slot)->name;
}

GPUSTUB1_INLINE const struct gpustub1_spec *
gpustub1_slot_spec(const struct gpustub1_slot *slot, const struct gpustub1_library *library)
{
    uint16_t spec;
    __builtin_memcpy(&spec, gpustub1_slot_info(slot)->spec, sizeof spec);
    return &library->specs[spec];
}

GPUSTUB1_INLINE void *gpustub1_slot_thunk(const struct gpustub1_slot *slot)
{
    return (char *)&slot->thunk + slot->thunk;
}

/* Has the function called through its translator, which it returns. */
GPUSTUB1_INLINE void *gpustub1_translate(const struct gpustub1_slot *slot, void *function)
{
    const char *behind = gpustub1_slot_name(slot) + __builtin_strlen(gpustub1_slot_name(slot)) + 1;
    struct gpustub1_translator to;
    __builtin_memcpy(&to, behind, sizeof to);
    void **target = (void *)(behind + offsetof(struct gpustub1_translator, target) + to.target);
    GPUSTUB1_STORE(target, function);
    return (char *)behind + to.code;
}

/* format.c */
GPUSTUB1_INTERNAL void gpustub1_append_bytes(struct gpustub1_text *text, const char *bytes,
                                             size_t length);
GPUSTUB1_INTERNAL void gpustub1_append(struct gpustub1_text *text, const char *string);
GPUSTUB1_INTERNAL void gpustub1_append_number(struct gpustub1_text *text, long number);
GPUSTUB1_INTERNAL void gpustub1_append_version(struct gpustub1_text *text, int32_t version);
GPUSTUB1_INTERNAL void gpustub1_append_json(struct gpustub1_text *text, const char *string);
GPUSTUB1_INTERNAL char *gpustub1_copy(const char *string);
GPUSTUB1_INTERNAL char *gpustub1_join(const char *a, const char *b, const char *c);

/* image.c */
GPUSTUB1_INTERNAL char *gpustub1_own_path(void);
GPUSTUB1_INTERNAL struct gpustub1_loaded *
gpustub1_loaded_images(const struct gpustub1_library *library);
GPUSTUB1_INTERNAL int gpustub1_inspect(void *handle, const struct gpustub1_library *library,
                                       char **path, int32_t *major);
GPUSTUB1_INTERNAL int gpustub1_secure(void);
GPUSTUB1_INTERNAL const char *gpustub1_env(const char *name);

/* search_dirs.c */
typedef int gpustub1_place_fn(void *context, const char *directory, const char *root,
                              const char *found);
/* Calls back with each place in S3's order (directory NULL: the loader's own search) until the
 * callback returns non-zero, and returns that. */
GPUSTUB1_INTERNAL int gpustub1_places(const struct gpustub1_library *library, const char *root,
                                      gpustub1_place_fn *callback, void *context);
GPUSTUB1_INTERNAL int gpustub1_each_file(const char *directory, const char *prefix,
                                         int (*callback)(void *context, const char *path),
                                         void *context);
GPUSTUB1_INTERNAL const char *gpustub1_is_impostor(const struct gpustub1_library *library,
                                                   const char *path);
GPUSTUB1_INTERNAL char *gpustub1_root_of(const struct gpustub1_library *library, const char *path);

/* toolkit_version.c */
GPUSTUB1_INTERNAL int32_t gpustub1_told_major(const struct gpustub1_library *library,
                                              const char *path);

/* candidate.c */
struct gpustub1_search {
    int index;
    const struct gpustub1_library *library;
    struct gpustub1_outcome *outcome;
    const struct gpustub1_toolkit *toolkit; /* what the library's family settled for, or NULL */
    int32_t driver;                         /* the driver's version; 0: no limit */
    const struct gpustub1_load_name *name;  /* the name being looked for */
    int settled;                            /* from now on only note what is passed over */
    int last;                               /* what is newer than the driver has its turn */
    int newer;                              /* a file waits for that */
};

GPUSTUB1_INTERNAL void gpustub1_note(struct gpustub1_search *search, char *what, char *why);
GPUSTUB1_INTERNAL int gpustub1_same_file(const char *a, const char *b);
GPUSTUB1_INTERNAL int gpustub1_passes_over_impostor(struct gpustub1_search *search,
                                                    const char *file);
GPUSTUB1_INTERNAL int gpustub1_take(struct gpustub1_search *search, void *handle, const char *file,
                                    const char *root, const char *found);
GPUSTUB1_INTERNAL int gpustub1_open(struct gpustub1_search *search, const char *file,
                                    const char *root, const char *found);
GPUSTUB1_INTERNAL void gpustub1_discard(struct gpustub1_outcome *outcome);

/* search.c */
GPUSTUB1_INTERNAL struct gpustub1_outcome *gpustub1_find(int library);

/* load.c */
GPUSTUB1_INTERNAL struct gpustub1_state *gpustub1_state(int library);
GPUSTUB1_INTERNAL const struct gpustub1_toolkit *gpustub1_toolkit(int family);
GPUSTUB1_INTERNAL const struct gpustub1_toolkit *
gpustub1_claim(int family, const struct gpustub1_outcome *outcome, const char *by);
GPUSTUB1_INTERNAL const struct gpustub1_library *gpustub1_library(int library);
GPUSTUB1_INTERNAL int gpustub1_library_count(void);
GPUSTUB1_INTERNAL struct gpustub1_outcome *gpustub1_settle(int library);
GPUSTUB1_INTERNAL int gpustub1_is_exiting(void);

/* call.c */
enum gpustub1_reason { GPUSTUB1_MISSING, GPUSTUB1_ABSENT, GPUSTUB1_REFUSED, GPUSTUB1_UNLOADING };
struct gpustub1_binding {
    const char *name;            /* in the library */
    int null;                    /* the argument that is NULL there and not the caller's; -1: none */
    enum gpustub1_reason reason; /* why there is none */
};
GPUSTUB1_INTERNAL void *gpustub1_resolve(const struct gpustub1_slot *slot,
                                         const struct gpustub1_library *library,
                                         const struct gpustub1_outcome *outcome,
                                         struct gpustub1_binding *binding);

/* hook.c */
GPUSTUB1_INTERNAL int gpustub1_hook(int library, const struct gpustub1_slot *slot,
                                    const struct gpustub1_spec *spec, struct gpustub1_frame *frame);
GPUSTUB1_INTERNAL int gpustub1_replay(int library, const struct gpustub1_outcome *outcome);
GPUSTUB1_INTERNAL int gpustub1_hook_loaded(const struct gpustub1_spec *spec, int is_there,
                                           struct gpustub1_frame *frame);

/* trace.c */
enum gpustub1_watching { GPUSTUB1_UNDECIDED, GPUSTUB1_OFF, GPUSTUB1_FAILING, GPUSTUB1_TRACING };
GPUSTUB1_INTERNAL enum gpustub1_watching gpustub1_watching(void);
GPUSTUB1_INTERNAL int gpustub1_watch(int library, const struct gpustub1_slot *slot,
                                     const struct gpustub1_frame *frame, int32_t *code);
GPUSTUB1_INTERNAL void gpustub1_answered(const struct gpustub1_slot *slot,
                                         const struct gpustub1_spec *spec, uintptr_t result);
GPUSTUB1_INTERNAL void gpustub1_count_calls(void);

/* report.c */
GPUSTUB1_INTERNAL const char *gpustub1_report(int library, struct gpustub1_outcome *outcome);
GPUSTUB1_INTERNAL void gpustub1_log(int library, struct gpustub1_outcome *outcome);
GPUSTUB1_INTERNAL void gpustub1_write(const char *data, size_t length);

#endif
