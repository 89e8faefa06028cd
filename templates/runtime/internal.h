/* internal.h: declarations shared by the files of the run time.
 *
 * Synchronization of threads (the run time has no lock, so a fork or a constructor that calls back is
 * harmless):
 *   1. search: each thread that finds a library unsettled creates a separate result;
 *   2. publish: one result per library wins a compare-and-swap and is never changed; only a provisional one is
 *      replaced, in the same way; all are freed only when the image is closed (unload.c);
 *   3. replay: one thread replays the registrations of start-up code (hook.c); others wait;
 *   4. bind: every such thread writes the slots from the winning result, that is, the same values;
 *   5. protect: with glibc, slots are in pages that the loader made read-only, which 4 opens for its stores, under
 *      the loader's lock, and closes (IMAGE_IS_LOCKED), unless the program has a dl_iterate_phdr of its own. Elsewhere
 *      they are on pages of their own, which become read-only when all libraries are bound and no thread is in 4.
 * The wait in 3 is the only one besides those for the loader, and a child of a fork does not wait for threads of its
 * parent. */
#ifndef GPUSTUB_INTERNAL_H
#define GPUSTUB_INTERNAL_H

#include "system.h"

#include <stdlib.h>

#define LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define LOAD_RELAXED(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* Growing string; a failed allocation leaves it unchanged and never aborts. */
struct text {
    char *data; /* NUL-terminated, or NULL while empty */
    size_t length, capacity;
};

/* A directory of a search. */
enum dir_kind {
    DIR_SEARCHED,
    DIR_LOADER,   /* no directory: the loader resolves the bare name */
    DIR_OF_LOADER /* one of the loader's directories */
};
struct search_dir {
    char *path;         /* absolute; NULL: DIR_LOADER */
    size_t root_length; /* length of the site-packages directory or toolkit root in path; 0: none */
    const char *found_by; /* origin of the directory: a variable, "search-dirs", ... */
    enum dir_kind kind;
};
struct search_dirs {
    struct search_dir *data;
    int length, capacity;
    int is_cut;         /* an allocation failed: directories are missing */
    int is_short;       /* a shortage, see is_shortage(): directories are missing */
    const char *except; /* root to skip because the list already has it, or NULL */
};

/* A file that may be the library, and its status: a search tries a list of candidates, and reports
 * print it. */
enum candidate_kind {
    CANDIDATE_FILE,
    CANDIDATE_LOADER,     /* the loader resolves the bare name */
    CANDIDATE_LOADER_DIR, /* a file in one of the loader's directories, after its search */
    CANDIDATE_CACHED,     /* a file of the loader's cache; tried when it is added */
    CANDIDATE_LOADED,     /* an image already loaded */
    CANDIDATE_HANDLE      /* a handle set by the program */
};
enum candidate_status {
    CANDIDATE_UNTRIED,  /* not tried, or not reported */
    CANDIDATE_DEFERRED, /* newer than the driver supports: tried again later */
    CANDIDATE_NOT_FOUND,
    CANDIDATE_REJECTED,
    CANDIDATE_CHOSEN
};
struct candidate {
    const char *name;      /* load name; NULL: none */
    const char *directory; /* one of the search's directories; NULL: `file`, or the loader's search */
    const char *found_by;
    char *reason;       /* reason for CANDIDATE_REJECTED */
    char *file;         /* absolute path if it is not `name` in `directory`; else NULL */
    size_t root_length; /* as in struct search_dir */
    int32_t major;      /* major of the load name; 0: none */
    enum candidate_kind kind;
    enum candidate_status status;
    uint8_t is_excluded; /* not of the major that the family settled for: never tried */
    uint8_t may_wait;    /* deferred if newer than the driver supports */
};

/* The result of a search. Unchanged after publication, except for the fields marked. */
struct result {
    void *handle; /* NULL: unavailable */
    char *path;   /* as the loader names it */
    const char *found_by;
    char *reason;    /* reason why unavailable; NULL if available */
    char *root;      /* site-packages directory or toolkit root that contains path, or NULL */
    int32_t major;   /* major of the load name, the toolkit's or the library's; 0: unknown */
    int32_t toolkit; /* major of the toolkit; 0: unknown */
    int32_t version; /* 1000 * major + 10 * minor; 0: unknown */
    int exact;       /* whether the minor part of version is known */
    int forced;      /* set by an override variable, or by a handle of the program */
    struct candidate *candidates; /* in the order of the search */
    int candidates_len, candidates_cap;
    struct search_dirs dirs;     /* the directories that candidates point to */
    int bound, refused, missing; /* atomic; set by binding, always to the same values */
    int renamed;                 /* atomic: number of functions bound under another name */
    int adapted;                 /* atomic: number of functions bound through an adapter thunk, and of objects
                                    copied in part */
    int copied;                  /* atomic: number of copies of data */
    char is_bound;               /* atomic */
    char *report;                /* atomic, built on demand */
    /* A result that a shortage of descriptors or memory may have caused is provisional: every `patience` + 1
     * calls one searches again, and replaces it. Doubling the number bounds the searches without a clock or
     * a lock: a library is found at the latest when as many calls were made after the shortage as in it. */
    int is_provisional;
    uint32_t patience;
    uint32_t calls;          /* atomic: calls that this result answered */
    struct result *previous; /* the provisional result that this one replaced, which callers may still use */
};

/* An image with the soname of a library. */
struct loaded_image {
    const struct load_name *name; /* NULL: a major newer than those in the manifest */
    char *path;                   /* NULL ends a list of images */
};

/* State of one library, for all packages with stubs of it. */
struct library_state {
    struct result *result; /* atomic */
    struct loaded_image
        *loaded_images;        /* atomic: images loaded before any thread searched */
    void *handle;              /* atomic: handle set by the program */
    struct hook_record *queue; /* atomic: calls of hooks, the latest first */
    int32_t replayer_process;  /* atomic: process of the thread that replays the queue */
    uintptr_t replayer;        /* atomic: that thread; 0: not stored yet */
    const char *errors;        /* atomic: as library.errors, once a call or a binding met a function with names */
};

/* The toolkit that the first library of a family settled for. */
struct toolkit {
    int32_t major;
    const char *root;       /* or NULL */
    const char *claimed_by; /* id of the library */
};
struct family {
    struct toolkit *toolkit; /* atomic; NULL: none yet */
};

/* Archives of different packages share these: another layout needs another version of the interface. WORDS: with
 * pointers of 64 and of 32 bits. */
#if __SIZEOF_POINTER__ == 8
#define WORDS(with_64, with_32) (with_64)
#else
#define WORDS(with_64, with_32) (with_32)
#endif
_Static_assert(sizeof(struct slot) == 16 && offsetof(struct slot, info) == SLOT_INFO &&
                   offsetof(struct slot, code) == SLOT_CODE &&
                   sizeof(struct part) == WORDS(48, 24),
               "layout of slots");
_Static_assert(offsetof(struct library, specs) == LIBRARY_SPECS &&
                   sizeof(struct library) == WORDS(240, 140) &&
                   sizeof(struct spec) == SPEC_SIZE && sizeof(struct load_name) == WORDS(16, 8) &&
                   sizeof(struct version_probe) == WORDS(24, 12) && sizeof(struct out_param) == 4 &&
                   sizeof(struct abi_entry) == 10 && sizeof(struct preload) == WORDS(16, 8),
               "layout of tables");
_Static_assert(sizeof(struct library_state) == WORDS(56, 28) && sizeof(struct family) == WORDS(8, 4),
               "layout of states");
_Static_assert(MAX_TARGETS == 4 && sizeof(struct adapter) == WORDS(40, 20) &&
                   offsetof(struct adapter, targets) == WORDS(16, 8) &&
                   offsetof(struct adapter_list, code) == 4,
               "layout of adapters, for which elf_table.h leaves room");

/* ---- parts of a slot: always inlined, since binding reads them for every function, even without
 * optimisation ---------------------------------------------------------------------------- */

ALWAYS_INLINE const struct slot_info *slot_info(const struct slot *slot)
{
    return (const void *)((const char *)slot + slot->info);
}

ALWAYS_INLINE const char *slot_name(const struct slot *slot)
{
    return slot_info(slot)->name;
}

ALWAYS_INLINE const struct spec *slot_spec(const struct slot *slot, const struct library *library)
{
    return &library->specs[*(const unaligned_u16 *)((const char *)slot + slot->info)];
}

ALWAYS_INLINE void *slot_thunk(const struct slot *slot)
{
    return (char *)slot + (LOAD_RELAXED(&slot->code) & ~SLOT_REASON) + THUNK_OFFSET;
}

/* The bytes that a slot of data got last. */
ALWAYS_INLINE void *slot_copied(const struct slot *slot)
{
    return (char *)slot + (LOAD_RELAXED(&slot->code) & ~SLOT_REASON);
}

/* Whether the object of a slot with data could not be written. It is behind what was copied: where an object is read-only,
 * the slot may be, too. */
ALWAYS_INLINE uint8_t *slot_is_denied(const struct slot *slot, const struct spec *spec)
{
    return (uint8_t *)slot_copied(slot) + (size_t)spec->value;
}

/* Returns whether a lookup found the stub itself, which is possible if it is exported. */
ALWAYS_INLINE int is_own_trampoline(const struct slot *slot, const void *target)
{
    return (const char *)slot + (LOAD_RELAXED(&slot->code) & ~SLOT_REASON) == target;
}

/* Reason that binding found; REASON_NONE: not bound yet, or there is a function. */
ALWAYS_INLINE enum reason slot_reason(const struct slot *slot)
{
    return (enum reason)(LOAD_ACQUIRE(&slot->code) & SLOT_REASON);
}

/* Address that an offset of the slot's adapter_list refers to. */
ALWAYS_INLINE void *adapter_part(const struct slot *slot, size_t offset)
{
    const char *place = slot_name(slot) + __builtin_strlen(slot_name(slot)) + 1 + offset;
    int32_t distance;
    __builtin_memcpy(&distance, place, sizeof distance);
    return (char *)place + distance;
}

/* Notes the names of the library's status codes, which an image has only with a function that needs them. */
ALWAYS_INLINE void note_errors(const struct slot *slot, const struct library *library,
                               const struct spec *spec)
{
    if (spec->names_errors)
        STORE_RELEASE(&library->state->errors, (const char *)adapter_part(slot, 0));
}

/* Functions of the library that the slot's adapters call. */
ALWAYS_INLINE void **slot_targets(const struct slot *slot)
{
    return adapter_part(slot, offsetof(struct adapter_list, targets));
}

/* A thunk, or a struct adapter. */
ALWAYS_INLINE void *slot_adapter(const struct slot *slot, const struct abi_entry *entry)
{
    return adapter_part(slot, offsetof(struct adapter_list, code) +
                                  entry->adapter * sizeof(int32_t));
}

/* Address of an integer argument of a call: where the function will find it, if it is called. */
GENERAL_REGISTERS ALWAYS_INLINE uintptr_t *argument(struct frame *frame, int index)
{
    return index < REGISTER_ARGS ? &frame->reg[index] : &frame->stack[index - REGISTER_ARGS];
}

/* format.c */
INTERNAL void append_bytes(struct text *text, const char *bytes, size_t length);
INTERNAL void append(struct text *text, const char *string);
INTERNAL void append_number(struct text *text, long number);
INTERNAL void append_version(struct text *text, int32_t version);
INTERNAL void append_printable(struct text *text, const char *string);
INTERNAL void append_json(struct text *text, const char *string);
INTERNAL char *copy_string(const char *string);
INTERNAL char *join(const char *a, const char *b, const char *c);

ALWAYS_INLINE void *to_pointer(uintptr_t address)
{
    void *pointer;
    __builtin_memcpy(&pointer, &address, sizeof pointer);
    return pointer;
}

/* dirs.c */
enum { MAX_FILES = 64 }; /* matches of one pattern in one directory */
INTERNAL size_t list_files(const char *directory, const char *prefix, char *paths[MAX_FILES],
                           int *is_short);
INTERNAL const char *component_end(const char *path, const char *name);
INTERNAL char *parent_of(const char *path, int count);
INTERNAL int exists_below(const char *directory, const char *name);
INTERNAL void append_dir(struct search_dirs *dirs, char *path, struct search_dir dir);
INTERNAL void add_search_dir(struct search_dirs *dirs, const char *root, const char *below,
                             const char *found_by);
INTERNAL void add_subdirs(struct search_dirs *dirs, const char *root, const char *const *below,
                          const char *found_by);
INTERNAL void free_search_dirs(struct search_dirs *dirs);

/* search_dirs.c */
INTERNAL const char *impostor_reason(const struct library *library, const char *path);
INTERNAL char *toolkit_root_of(const struct library *library, const char *path);
INTERNAL void list_search_dirs(struct search_dirs *dirs, const struct library *library,
                               const char *root);

/* version_query.c: 0: unknown */
INTERNAL int32_t query_version(const struct library *library, void *handle);

/* candidate.c */
struct search {
    const struct library *library;
    struct result *result;
    const struct toolkit *toolkit; /* toolkit that the library's family settled for, or NULL */
    int32_t driver;                /* the driver's version; 0: no limit */
    int next;                      /* index of the next candidate to try */
    int is_cut;                    /* an allocation failed: candidates are missing */
    int is_short;                  /* a shortage, see is_shortage(): candidates failed that may exist */
};
INTERNAL int32_t named_toolkit(const struct search *search, const struct candidate *candidate);
INTERNAL int is_reported(const struct candidate *candidate);
INTERNAL void append_candidate(struct text *text, const struct candidate *candidate);
INTERNAL void reject_candidate(struct search *search, struct candidate *candidate, char *reason);
INTERNAL void skip_candidate(struct search *search, struct candidate *candidate,
                             const char *reason);
INTERNAL void accept_library(struct search *search, struct candidate *candidate, void *handle);
INTERNAL void open_candidate(struct search *search, struct candidate *candidate);
INTERNAL void open_loaded(struct search *search, struct candidate *candidate);
INTERNAL void discard_result(struct result *result);

/* preload.c */
INTERNAL void preload_files(const struct search *search);

/* search.c */
INTERNAL struct result *find_library(const struct library *library);

/* parts.c */
INTERNAL struct part *next_part(const struct library_state *state, const struct part *after);
INTERNAL const struct library *first_library(const struct library_state *state);
INTERNAL int slot_count(const struct library_state *state);
#define FOR_EACH_PART(part, state)                                                                 \
    for (struct part *part = next_part((state), NULL); part; part = next_part((state), part))

/* resolve.c */
struct binding {
    const char *name;              /* in the library */
    const char *explanation;       /* reason of a refused or missing function; or NULL */
    const struct abi_entry *entry; /* entry with an adapter; or NULL */
    const char *lacking;           /* target that the library lacks; or NULL */
    size_t size;                   /* of data: number of bytes to copy */
    size_t larger_size;            /* of data whose sizes in list and library differ; else 0 */
    void *targets[MAX_TARGETS];    /* functions of the library; the first is the bound one */
    enum reason reason;            /* reason why no function is bound */
};
INTERNAL void *resolve_slot(const struct slot *slot, const struct library *library,
                            const struct result *result, struct binding *binding);

/* load.c */
INTERNAL struct result *settle_library(struct library_state *state);
INTERNAL int is_exiting(void);
INTERNAL void register_finish(void);
INTERNAL void *adapt(const struct slot *slot, const struct binding *binding);

/* data.c */
INTERNAL int copy_data(const struct slot *slot, const void *source, size_t size, int may_open);
INTERNAL void update_data(void);
INTERNAL void wrap_callback(uintptr_t *callback);

/* hook.c */
INTERNAL int answer_hook(const struct slot *slot, const struct spec *spec, struct frame *frame);
INTERNAL int replay_hooks(struct library_state *state, const struct result *result);
INTERNAL int answer_hook_after_load(const struct spec *spec, int is_there, struct frame *frame);
INTERNAL void free_hook_queue(struct library_state *state);
INTERNAL void free_modules(void);

/* unload.c */
INTERNAL void free_if_closing(void);

/* trace.c */
enum trace_mode { TRACE_UNDECIDED, TRACE_OFF, TRACE_FAILING, TRACE_CALLS };
INTERNAL enum trace_mode trace_mode(void);
INTERNAL int observe_call(const struct slot *slot, struct frame *frame, int32_t *code);
INTERNAL struct observed_call *observe_result(const struct slot *slot, const struct spec *spec);
INTERNAL void trace_answer(const struct slot *slot, const struct spec *spec, uintptr_t result);
INTERNAL void report_call_counts(void);
INTERNAL void free_failure_rules(void);

/* report.c */
INTERNAL const char *get_report(const struct library_state *state, struct result *result);
INTERNAL void log_report(const struct library_state *state, struct result *result);
INTERNAL void report_setting(const char *message, const char *value);

#include "os.h"

#endif
