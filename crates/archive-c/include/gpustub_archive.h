/* gpustub_archive.h - reads super-archives: static libraries for many GPU families in one file.
 *
 * An archive has views, and a view has symbols, each defined by one member. Bytes may have any address
 * and are never written; they must stay unchanged while the archive is in use. All structs belong to the
 * caller, may be copied, and need not be released. No function allocates.
 *
 * Functions return a status: GPUSTUB_ARCHIVE_OK, GPUSTUB_ARCHIVE_NONE, or an error, which is less than 0.
 * Outputs are set only on GPUSTUB_ARCHIVE_OK; after another status an output struct may count as not opened.
 * A null pointer, or a struct that was not opened, results in GPUSTUB_ARCHIVE_ARGUMENT. Names are bytes with a
 * length in bytes, without a terminator; names and contents point into the bytes of the archive. */
#ifndef GPUSTUB_ARCHIVE_H
#define GPUSTUB_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gpustub_archive_status {
    GPUSTUB_ARCHIVE_OK = 0,
    /* No such view, symbol or index, or no next symbol. */
    GPUSTUB_ARCHIVE_NONE = 1,
    /* A null or misaligned pointer, an impossible size, or a struct that was not opened. */
    GPUSTUB_ARCHIVE_ARGUMENT = -1,
    /* The bytes do not begin with the magic of an archive. */
    GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE = -2,
    /* An archive without views: an ordinary one, or one whose views another tool has dropped. */
    GPUSTUB_ARCHIVE_NO_VIEWS = -3,
    /* The archive, or a member, requires a later reader. */
    GPUSTUB_ARCHIVE_VERSION = -4,
    /* Ordinary tools do not see the default view: its members or the index were changed. */
    GPUSTUB_ARCHIVE_ORDINARY = -5,
    /* A member was moved, or its header changed. */
    GPUSTUB_ARCHIVE_MOVED = -6,
    /* The contents of a member differ from those that were written. */
    GPUSTUB_ARCHIVE_CONTENTS = -7,
    /* An offset out of bounds, or a table that differs from the one that was written. */
    GPUSTUB_ARCHIVE_DAMAGED = -8,
    /* An error without a status code of its own. */
    GPUSTUB_ARCHIVE_OTHER = -9
};

/* An archive in memory. */
struct gpustub_archive { uint64_t opaque[64]; };
/* A view of an archive. */
struct gpustub_archive_view { uint64_t opaque[40]; };
/* A member. */
struct gpustub_archive_member { uint64_t opaque[32]; };
/* Iterator over the symbols of a view. */
struct gpustub_archive_symbols { uint64_t opaque[48]; };

#ifdef __cplusplus
#define GPUSTUB_ARCHIVE_ASSERT(what) static_assert(what, #what)
#else
#define GPUSTUB_ARCHIVE_ASSERT(what) _Static_assert(what, #what)
#endif
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive) == 512);
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive_view) == 320);
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive_member) == 256);
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive_symbols) == 384);
#undef GPUSTUB_ARCHIVE_ASSERT

/* Opens an archive of `size` bytes, which stay the caller's. Reads a few of them. GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE,
 * GPUSTUB_ARCHIVE_NO_VIEWS, GPUSTUB_ARCHIVE_VERSION, GPUSTUB_ARCHIVE_LENGTH or GPUSTUB_ARCHIVE_DAMAGED. */
int gpustub_archive_open(struct gpustub_archive *archive, const void *bytes, size_t size);
/* Checks the whole archive against the hashes that were written with it, in time proportional to its size. The first
 * wrong part: GPUSTUB_ARCHIVE_DAMAGED for a table, GPUSTUB_ARCHIVE_MOVED or GPUSTUB_ARCHIVE_CONTENTS for a member. */
int gpustub_archive_verify(const struct gpustub_archive *archive);

/* Returns the number of views. */
int gpustub_archive_view_count(const struct gpustub_archive *archive, size_t *count);
/* Finds the view of that name. GPUSTUB_ARCHIVE_NONE without one, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_view(const struct gpustub_archive *archive, const char *name, size_t length, struct gpustub_archive_view *view);
/* Returns the view of that index, from 0. GPUSTUB_ARCHIVE_NONE after the last, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_view_at(const struct gpustub_archive *archive, size_t index, struct gpustub_archive_view *view);
/* Returns the view that ordinary tools see. GPUSTUB_ARCHIVE_NONE without one, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_default_view(const struct gpustub_archive *archive, struct gpustub_archive_view *view);

/* Returns the number of members, each counted once. */
int gpustub_archive_member_count(const struct gpustub_archive *archive, size_t *count);
/* Returns the member of that index, from 0. GPUSTUB_ARCHIVE_NONE after the last, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_member_at(const struct gpustub_archive *archive, size_t index, struct gpustub_archive_member *member);

/* Returns the name of a view. */
int gpustub_archive_view_name(const struct gpustub_archive_view *view, const char **name, size_t *length);
/* Returns the number of symbols of a view. */
int gpustub_archive_symbol_count(const struct gpustub_archive_view *view, size_t *count);
/* Finds the member that defines a symbol. GPUSTUB_ARCHIVE_NONE without one, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_find(const struct gpustub_archive_view *view, const char *symbol, size_t length, struct gpustub_archive_member *member);
/* Starts an iteration over all symbols of a view, in unspecified order. */
int gpustub_archive_symbols(const struct gpustub_archive_view *view, struct gpustub_archive_symbols *symbols);
/* Returns the next symbol, and the member that defines it. GPUSTUB_ARCHIVE_NONE after the last; GPUSTUB_ARCHIVE_DAMAGED
 * for a malformed symbol, after which the next call continues. */
int gpustub_archive_next_symbol(struct gpustub_archive_symbols *symbols, const char **name, size_t *length, struct gpustub_archive_member *member);
/* Returns the number of members of a view. */
int gpustub_archive_view_member_count(const struct gpustub_archive_view *view, size_t *count);
/* Returns the member at that index, from 0, in the order of the view's layers, and the index of its layer.
 * GPUSTUB_ARCHIVE_NONE after the last, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_view_member_at(const struct gpustub_archive_view *view, size_t index, struct gpustub_archive_member *member, size_t *layer);
/* Returns the number of layers of a view. */
int gpustub_archive_layer_count(const struct gpustub_archive_view *view, size_t *count);
/* Returns the name of the layer of that index, from 0. GPUSTUB_ARCHIVE_NONE after the last, GPUSTUB_ARCHIVE_DAMAGED for corrupt tables. */
int gpustub_archive_layer_name(const struct gpustub_archive_view *view, size_t index, const char **name, size_t *length);

/* Returns the name of a member. */
int gpustub_archive_member_name(const struct gpustub_archive_member *member, const char **name, size_t *length);
/* Returns the contents of a member and their size in bytes. GPUSTUB_ARCHIVE_MOVED if another tool has moved the member or
 * changed its header. Only gpustub_archive_verify compares the contents with their hash. */
int gpustub_archive_member_data(const struct gpustub_archive_member *member, const void **data, size_t *size);
/* Returns the index of a member: two views share a member if its index is the same. */
int gpustub_archive_member_index(const struct gpustub_archive_member *member, size_t *index);

/* Returns the English text of a status, including unknown ones. Never null; static, not to be released. */
const char *gpustub_archive_strerror(int status);

#ifdef __cplusplus
}
#endif

#endif
