/* gpustub_archive.h - reads super-archives: static libraries for many GPU families in one file.
 *
 * An archive has views, and a view has symbols, each defined by one member. Bytes may lie at any
 * address and are never written; they must stay as they are while what was opened is in use. All structs
 * belong to the caller, may be copied, and need not be released. Nothing is allocated.
 *
 * Functions give back a status: GPUSTUB_ARCHIVE_OK, GPUSTUB_ARCHIVE_NONE, or an error, which is less
 * than 0. Outputs hold something after GPUSTUB_ARCHIVE_OK only. A null pointer, and a struct that nothing
 * was opened into, is GPUSTUB_ARCHIVE_ARGUMENT. Names are bytes, have a length and no end mark. */
#ifndef GPUSTUB_ARCHIVE_H
#define GPUSTUB_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gpustub_archive_status {
    GPUSTUB_ARCHIVE_OK = 0,
    /* There is no such view, symbol or index, or no next one. */
    GPUSTUB_ARCHIVE_NONE = 1,
    /* A null or misaligned pointer, an impossible size, or a struct that nothing was opened into. */
    GPUSTUB_ARCHIVE_ARGUMENT = -1,
    /* The bytes do not begin as an archive does. */
    GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE = -2,
    /* An archive without views: an ordinary one, or another tool has dropped them. */
    GPUSTUB_ARCHIVE_NO_VIEWS = -3,
    /* Written in a format that this reader does not know. */
    GPUSTUB_ARCHIVE_VERSION = -4,
    /* The archive is longer or shorter than it was when it was written. */
    GPUSTUB_ARCHIVE_LENGTH = -5,
    /* A member is no longer where it was, or its header is another. */
    GPUSTUB_ARCHIVE_MOVED = -6,
    /* The contents of a member are not those that were written. */
    GPUSTUB_ARCHIVE_CONTENTS = -7,
    /* Numbers that point nowhere, or a table that is not as written. */
    GPUSTUB_ARCHIVE_DAMAGED = -8,
    /* An error that this interface has no number for. */
    GPUSTUB_ARCHIVE_OTHER = -9
};

/* An archive in memory. */
struct gpustub_archive { uint64_t opaque[32]; };
/* One of its views. */
struct gpustub_archive_view { uint64_t opaque[40]; };
/* A member. */
struct gpustub_archive_member { uint64_t opaque[16]; };
/* Symbols of a view that were not seen yet. */
struct gpustub_archive_symbols { uint64_t opaque[48]; };

#ifdef __cplusplus
#define GPUSTUB_ARCHIVE_ASSERT(what) static_assert(what, #what)
#else
#define GPUSTUB_ARCHIVE_ASSERT(what) _Static_assert(what, #what)
#endif
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive) == 256);
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive_view) == 320);
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive_member) == 128);
GPUSTUB_ARCHIVE_ASSERT(sizeof(struct gpustub_archive_symbols) == 384);
#undef GPUSTUB_ARCHIVE_ASSERT

/* Opens an archive of `size` bytes. Looks at a few of them. */
int gpustub_archive_open(struct gpustub_archive *archive, const void *bytes, size_t size);
/* Reads all of it, and checks it against the hashes that were written with it. */
int gpustub_archive_verify(const struct gpustub_archive *archive);

/* The number of views. */
int gpustub_archive_view_count(const struct gpustub_archive *archive, size_t *count);
/* The view of that name. */
int gpustub_archive_view(const struct gpustub_archive *archive, const char *name, size_t length, struct gpustub_archive_view *view);
/* The view of that index, from 0. */
int gpustub_archive_view_at(const struct gpustub_archive *archive, size_t index, struct gpustub_archive_view *view);
/* The view that ordinary tools see. */
int gpustub_archive_default_view(const struct gpustub_archive *archive, struct gpustub_archive_view *view);

/* The number of members, each counted once. */
int gpustub_archive_member_count(const struct gpustub_archive *archive, size_t *count);
/* The member of that index, from 0. */
int gpustub_archive_member_at(const struct gpustub_archive *archive, size_t index, struct gpustub_archive_member *member);

/* The name of a view. */
int gpustub_archive_view_name(const struct gpustub_archive_view *view, const char **name, size_t *length);
/* The number of its symbols. */
int gpustub_archive_symbol_count(const struct gpustub_archive_view *view, size_t *count);
/* The member that defines a symbol. */
int gpustub_archive_find(const struct gpustub_archive_view *view, const char *symbol, size_t length, struct gpustub_archive_member *member);
/* Begins to go over all its symbols, in no order that means something. */
int gpustub_archive_symbols(const struct gpustub_archive_view *view, struct gpustub_archive_symbols *symbols);
/* The next symbol, and the member that defines it. */
int gpustub_archive_next_symbol(struct gpustub_archive_symbols *symbols, const char **name, size_t *length, struct gpustub_archive_member *member);
/* The number of its members. */
int gpustub_archive_view_member_count(const struct gpustub_archive_view *view, size_t *count);
/* Of its members in the order of its layers the one at that index, and the index of its layer. */
int gpustub_archive_view_member_at(const struct gpustub_archive_view *view, size_t index, struct gpustub_archive_member *member, size_t *layer);
/* The number of its layers. */
int gpustub_archive_layer_count(const struct gpustub_archive_view *view, size_t *count);
/* The name of a layer. */
int gpustub_archive_layer_name(const struct gpustub_archive_view *view, size_t index, const char **name, size_t *length);

/* The name of a member. */
int gpustub_archive_member_name(const struct gpustub_archive_member *member, const char **name, size_t *length);
/* The contents of a member. */
int gpustub_archive_member_data(const struct gpustub_archive_member *member, const void **data, size_t *size);
/* The index of a member: two views share it if it is the same. */
int gpustub_archive_member_index(const struct gpustub_archive_member *member, size_t *index);

/* A sentence for a status, in English. */
const char *gpustub_archive_strerror(int status);

#ifdef __cplusplus
}
#endif

#endif
