/* Reads super-archives: static libraries for many GPU families in one file, each member once. FORMAT.md specifies
 * each byte. C99, and C++11 and later; needs nothing but <string.h>. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An archive in memory has views, a view has members and symbols, and each symbol is defined by one member. Bytes may
 * have any address, are never written, and stay unchanged while the archive is in use. No byte is trusted. Functions
 * allocate nothing and have no state: structs belong to the caller and are not released. A view, a member and contents
 * refer to the struct of their archive, which must stay where it is.
 *
 * Functions return a status. Outputs are valid after GPUSTUB_ARCHIVE_OK only. Names are bytes with a length, without
 * a terminator; names and contents point into the bytes of the archive. Pointers are not NULL, unless stated otherwise;
 * bytes without a length may be. Fields of structs are read by callers, and written by the functions here alone;
 * those after "internal" may change with each release. */
#ifndef GPUSTUB_ARCHIVE_H
#define GPUSTUB_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gpustub_archive_status {
    GPUSTUB_ARCHIVE_OK = 0,
    /* No such view, symbol or index, or no next symbol. */
    GPUSTUB_ARCHIVE_NONE = 1,
    /* The bytes do not begin with the magic of an archive. */
    GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE = -1,
    /* An archive without views: an ordinary one, or one whose views another tool has dropped. */
    GPUSTUB_ARCHIVE_NO_VIEWS = -2,
    /* A later version, or a feature, an extension or a form of contents that this reader does not know. */
    GPUSTUB_ARCHIVE_UNSUPPORTED = -3,
    /* An offset out of bounds, or a table that is not as the format requires. */
    GPUSTUB_ARCHIVE_MALFORMED = -4,
    /* Another tool has moved an ordinary member, or changed its header. */
    GPUSTUB_ARCHIVE_MOVED = -5,
    /* The contents are compressed: gpustub_archive_decompress. */
    GPUSTUB_ARCHIVE_COMPRESSED = -6,
    /* The caller's function failed, a buffer has the wrong size, or the result is not what was written. */
    GPUSTUB_ARCHIVE_DECOMPRESSION = -7,
    /* gpustub_archive_verify: contents, ordinary members or the index are not as written. */
    GPUSTUB_ARCHIVE_CHANGED = -8
};

/* Returns a text for a status, for messages: "super-archive is malformed". Never NULL. */
static inline const char *gpustub_archive_status_text(int status) {
    switch (status) {
    case GPUSTUB_ARCHIVE_OK: return "success";
    case GPUSTUB_ARCHIVE_NONE: return "no such view, symbol or index";
    case GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE: return "not an archive";
    case GPUSTUB_ARCHIVE_NO_VIEWS: return "archive without the views of a super-archive";
    case GPUSTUB_ARCHIVE_UNSUPPORTED: return "super-archive requires a newer reader";
    case GPUSTUB_ARCHIVE_MALFORMED: return "super-archive is malformed";
    case GPUSTUB_ARCHIVE_MOVED: return "super-archive changed: a member was moved";
    case GPUSTUB_ARCHIVE_COMPRESSED: return "contents of the super-archive are compressed";
    case GPUSTUB_ARCHIVE_DECOMPRESSION: return "contents of the super-archive cannot be decompressed";
    case GPUSTUB_ARCHIVE_CHANGED: return "super-archive changed";
    default: return "unknown status";
    }
}

/* Parts of the tables, in the order of the file. */
enum gpustub_archive_part {
    GPUSTUB_ARCHIVE_CONTENTS,
    GPUSTUB_ARCHIVE_VIEWS,
    GPUSTUB_ARCHIVE_DIRECTORY,
    GPUSTUB_ARCHIVE_DICTIONARIES,
    GPUSTUB_ARCHIVE_SLOTS,
    GPUSTUB_ARCHIVE_ROWS,
    GPUSTUB_ARCHIVE_LISTS,
    GPUSTUB_ARCHIVE_ENTRIES,
    GPUSTUB_ARCHIVE_LAYER_LISTS,
    GPUSTUB_ARCHIVE_LAYER_NAMES,
    GPUSTUB_ARCHIVE_EXTENSIONS,
    GPUSTUB_ARCHIVE_TEXTS,
    GPUSTUB_ARCHIVE_PARTS
};

/* An archive in memory. */
struct gpustub_archive {
    uint32_t view_count;
    /* Number of distinct contents. */
    uint32_t contents_count;
    /* internal: the archive, the blob in it, and the parts of the blob */
    const unsigned char *bytes, *blob;
    size_t size, blob_size;
    const unsigned char *part[GPUSTUB_ARCHIVE_PARTS];
    uint32_t count[GPUSTUB_ARCHIVE_PARTS];
    uint32_t default_view, longest;
};

/* A table of names. */
struct gpustub_archive_slots {
    const unsigned char *first;
    uint32_t homes, longest;
};

/* A view of an archive: members, and the symbols that they define. */
struct gpustub_archive_view {
    const struct gpustub_archive *archive;
    const char *name;
    size_t name_length;
    uint32_t index;
    uint32_t member_count, layer_count;
    /* internal */
    struct gpustub_archive_slots slots;
    uint32_t classes;
    const unsigned char *row, *entries, *layers;
};

/* Contents of members with any number of names, in any number of views. */
struct gpustub_archive_contents {
    const struct gpustub_archive *archive;
    /* Index in the archive: members have equal contents if it is the same. */
    uint32_t index;
    /* Bits: GPUSTUB_ARCHIVE_HIDDEN, GPUSTUB_ARCHIVE_VARIANT. */
    uint32_t flags;
    /* Size in bytes, when not compressed, and in the file. */
    uint64_t size, stored_size;
    /* Hash when not compressed: gpustub_archive_hash. */
    uint64_t hash;
    /* 0: plain; otherwise a number of enum gpustub_archive_codec. */
    unsigned codec;
    /* internal */
    uint64_t offset;
    uint32_t base, header_hash;
};

enum gpustub_archive_flag {
    /* Not an ordinary member, which other tools read. */
    GPUSTUB_ARCHIVE_HIDDEN = 1,
    /* Symbols that an earlier layer overrides are undefined in it: gpustub_archive_original. */
    GPUSTUB_ARCHIVE_VARIANT = 2
};

enum gpustub_archive_codec { GPUSTUB_ARCHIVE_PLAIN = 0, GPUSTUB_ARCHIVE_ZSTD = 1 };

/* A member of a view. */
struct gpustub_archive_member {
    const char *name;
    size_t name_length;
    /* Position in the view, and index of the layer. */
    uint32_t position, layer;
    struct gpustub_archive_contents contents;
};

/* ---- bytes ---- */

static inline uint32_t gpustub_archive_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t gpustub_archive_u64(const unsigned char *at) {
    return gpustub_archive_u32(at) | (uint64_t)gpustub_archive_u32(at + 4) << 32;
}

/* Whether `size` bytes at `at` are within `limit` bytes. */
static inline int gpustub_archive_within(uint64_t at, uint64_t size, uint64_t limit) {
    return at <= limit && size <= limit - at;
}

/* Whether two names are the same. */
static inline int gpustub_archive_same(const void *a, size_t a_length, const void *b, size_t b_length) {
    return a_length == b_length && (a_length == 0 || memcmp(a, b, a_length) == 0);
}

/* Returns the hash of names and contents. */
static inline uint64_t gpustub_archive_hash(const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t hash = size;
    while (size > 0) {
        unsigned char last[16] = {0};
        size_t step = size < 16 ? size : 16;
        uint64_t a, b, p, q, r;
        if (step < 16) {
            memcpy(last, at, step);
            a = gpustub_archive_u64(last);
            b = gpustub_archive_u64(last + 8);
        } else {
            a = gpustub_archive_u64(at);
            b = gpustub_archive_u64(at + 8);
        }
        a ^= UINT64_C(0x9E3779B97F4A7C15);
        b ^= UINT64_C(0xBB67AE8584CAA73B);
        /* The product's halves, in 64 bits. */
        p = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
        q = (a >> 32) * (b & 0xFFFFFFFF) + (p >> 32);
        r = (a & 0xFFFFFFFF) * (b >> 32) + (q & 0xFFFFFFFF);
        a = (a >> 32) * (b >> 32) + (q >> 32) + (r >> 32);
        hash = hash * UINT64_C(0x9FB21C651E98DF25) + (a ^ (r << 32 | (p & 0xFFFFFFFF)));
        at += step;
        size -= step;
    }
    return hash;
}

/* Returns the size of a record of a part. */
static inline unsigned gpustub_archive_record_size(unsigned part) {
    static const unsigned char sizes[GPUSTUB_ARCHIVE_PARTS] = {48, 32, 4, 32, 16, 4, 12, 16, 8, 8, 32, 1};
    return sizes[part];
}

/* Returns the first of several records of a part, which is the end of the part if `count` is 0, or NULL. */
static inline const unsigned char *gpustub_archive_records(const struct gpustub_archive *archive, unsigned part, uint32_t first,
                                                           uint64_t count) {
    int fits = gpustub_archive_within(first, count, archive->count[part]);
    return fits ? archive->part[part] + (size_t)first * gpustub_archive_record_size(part) : NULL;
}

/* Returns a record of a part, or NULL. */
static inline const unsigned char *gpustub_archive_record(const struct gpustub_archive *archive, unsigned part, uint32_t index) {
    return gpustub_archive_records(archive, part, index, 1);
}

/* Returns the text whose offset and length are at `at`, or NULL. */
static inline const char *gpustub_archive_text(const struct gpustub_archive *archive, const unsigned char *at, size_t *length) {
    uint32_t size = gpustub_archive_u32(at + 4);
    *length = size;
    return (const char *)gpustub_archive_records(archive, GPUSTUB_ARCHIVE_TEXTS, gpustub_archive_u32(at), size);
}

/* ---- location of the blob ---- */

static inline uint64_t gpustub_archive_elf_word(const unsigned char *at, unsigned size, int big) {
    uint64_t word = 0;
    unsigned i;
    for (i = 0; i < size; i++)
        word = word << 8 | at[big ? i : size - 1 - i];
    return word;
}

/* Whether the blob begins at that offset of a member. */
static inline int gpustub_archive_is_blob(const unsigned char *member, uint64_t size, uint64_t at, uint64_t length) {
    return gpustub_archive_within(at, length, size) && length >= 16 && memcmp(member + at, "\177gpustub archive", 16) == 0;
}

/* Finds the blob in a member that is not the index. `at` and `length` stay 0 without one. */
static inline void gpustub_archive_in_object(const unsigned char *member, uint64_t size, uint64_t *at, uint64_t *length) {
    if (size >= 16 && gpustub_archive_u32(member) == 0x0B17C0DE) {
        uint64_t end = (uint64_t)gpustub_archive_u32(member + 8) + gpustub_archive_u32(member + 12);
        if (end <= size && gpustub_archive_is_blob(member, size, end, size - end)) {
            *at = end;
            *length = size - end;
        }
    } else if (size >= 6 && memcmp(member, "\177ELF", 4) == 0) {
        /* e_shoff, e_shentsize and e_shnum; sh_offset and sh_size of <elf.h> */
        int wide = member[4] == 2, big = member[5] == 2;
        unsigned word = wide ? 8 : 4, offset = wide ? 24 : 16, i;
        uint64_t table, entry, count;
        if (size < (wide ? 62 : 50))
            return;
        table = gpustub_archive_elf_word(member + (wide ? 40 : 32), word, big);
        entry = gpustub_archive_elf_word(member + (wide ? 58 : 46), 2, big);
        count = gpustub_archive_elf_word(member + (wide ? 60 : 48), 2, big);
        for (i = 0; i < count && table <= size; i++, table += entry) {
            uint64_t section, bytes;
            if (!gpustub_archive_within(table, offset + 2 * word, size))
                break;
            section = gpustub_archive_elf_word(member + table + offset, word, big);
            bytes = gpustub_archive_elf_word(member + table + offset + word, word, big);
            if (gpustub_archive_is_blob(member, size, section, bytes)) {
                *at = section;
                *length = bytes;
                return;
            }
        }
    }
}

/* Parses the header of a member at an offset: the length of its name field without the spaces at the end, and the size
 * of the member. Returns 0 if the header is malformed, or the member is not within the archive. */
static inline int gpustub_archive_parse_header(const unsigned char *bytes, uint64_t size, uint64_t at, unsigned *name_length,
                                               uint64_t *member_size) {
    unsigned digits = 0, spaces;
    const unsigned char *header = bytes + at;
    if (!gpustub_archive_within(at, 60, size))
        return 0;
    *member_size = 0;
    while (digits < 10 && header[48 + digits] >= '0' && header[48 + digits] <= '9')
        *member_size = *member_size * 10 + (uint64_t)(header[48 + digits++] - '0');
    for (spaces = digits; spaces < 10 && header[48 + spaces] == ' ';)
        spaces++;
    *name_length = 16;
    while (*name_length > 0 && header[*name_length - 1] == ' ')
        --*name_length;
    return digits > 0 && spaces == 10 && header[58] == '`' && header[59] == '\n' && gpustub_archive_within(at + 60, *member_size, size);
}

/* Finds the blob, and the number of bytes to the end of its container. */
static inline int gpustub_archive_find_blob(const unsigned char *bytes, uint64_t size, uint64_t *blob, uint64_t *length) {
    uint64_t at = 8;
    int hop;
    if (size < 8 || memcmp(bytes, "!<arch>\n", 8) != 0)
        return GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE;
    for (hop = 0; hop < 3 && gpustub_archive_within(at, 60, size); hop++) {
        const unsigned char *header = bytes + at, *member = header + 60;
        uint64_t member_size;
        unsigned name;
        if (!gpustub_archive_parse_header(bytes, size, at, &name, &member_size))
            return GPUSTUB_ARCHIVE_MALFORMED;
        *blob = *length = 0;
        if (gpustub_archive_same(header, name, "/", 1) || gpustub_archive_same(header, name, "/SYM64/", 7)) {
            if (member_size >= 24 && memcmp(member + member_size - 16, "\177gpustub trailer", 16) == 0) {
                uint64_t start = gpustub_archive_u64(member + member_size - 24), end = member_size - 24;
                if (start <= end && gpustub_archive_is_blob(member, member_size, start, end - start)) {
                    *blob = start;
                    *length = end - start;
                }
            }
        } else if (!gpustub_archive_same(header, name, "//", 2)) {
            gpustub_archive_in_object(member, member_size, blob, length);
            if (*length == 0)
                return GPUSTUB_ARCHIVE_NO_VIEWS;
        }
        if (*length > 0) {
            *blob += at + 60;
            return GPUSTUB_ARCHIVE_OK;
        }
        at += 60 + member_size + member_size % 2;
    }
    return GPUSTUB_ARCHIVE_NO_VIEWS;
}

/* ---- archives and views ---- */

/* Opens an archive of `size` bytes. Reads the headers of at most three members, that of the tables, and the table of
 * extensions. */
static inline int gpustub_archive_open(struct gpustub_archive *archive, const void *bytes, size_t size) {
    uint64_t start, length, at, tables, blob_size;
    unsigned part;
    uint32_t i;
    const unsigned char *blob;
    int status = gpustub_archive_find_blob((const unsigned char *)bytes, size, &start, &length);
    if (status != GPUSTUB_ARCHIVE_OK)
        return status;
    blob = (const unsigned char *)bytes + start;
    if (length < 18)
        return GPUSTUB_ARCHIVE_MALFORMED;
    if (blob[16] != 1 || blob[17] != 0)
        return GPUSTUB_ARCHIVE_UNSUPPORTED;
    if (length < 28)
        return GPUSTUB_ARCHIVE_MALFORMED;
    /* Bit 0: contents may be compressed. */
    if (gpustub_archive_u32(blob + 24) & ~(uint32_t)1)
        return GPUSTUB_ARCHIVE_UNSUPPORTED;
    at = gpustub_archive_u32(blob + 20);
    if (length < 120 || at < 120 || at > length)
        return GPUSTUB_ARCHIVE_MALFORMED;
    blob_size = gpustub_archive_u64(blob + 32);
    tables = gpustub_archive_u64(blob + 40);
    if (blob_size > length || tables > blob_size)
        return GPUSTUB_ARCHIVE_MALFORMED;
    archive->bytes = (const unsigned char *)bytes;
    archive->size = size;
    archive->blob = blob;
    archive->blob_size = (size_t)blob_size;
    for (part = 0; part < GPUSTUB_ARCHIVE_PARTS; part++) {
        uint64_t part_size;
        archive->count[part] = gpustub_archive_u32(blob + 56 + 4 * part);
        part_size = (uint64_t)archive->count[part] * gpustub_archive_record_size(part);
        if (!gpustub_archive_within(at, part_size, tables))
            return GPUSTUB_ARCHIVE_MALFORMED;
        archive->part[part] = blob + at;
        at += part_size;
    }
    archive->view_count = archive->count[GPUSTUB_ARCHIVE_VIEWS];
    archive->contents_count = archive->count[GPUSTUB_ARCHIVE_CONTENTS];
    archive->default_view = gpustub_archive_u32(blob + 48);
    archive->longest = gpustub_archive_u32(blob + 52);
    if (archive->default_view > archive->view_count || archive->longest > archive->count[GPUSTUB_ARCHIVE_DIRECTORY])
        return GPUSTUB_ARCHIVE_MALFORMED;
    for (i = 0; i < archive->count[GPUSTUB_ARCHIVE_EXTENSIONS]; i++) {
        const unsigned char *one = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_EXTENSIONS, i);
        uint64_t offset = gpustub_archive_u64(one + 8);
        uint32_t flags = gpustub_archive_u32(one + 4);
        if (flags > 1 || !gpustub_archive_within(offset, gpustub_archive_u64(one + 16), blob_size))
            return GPUSTUB_ARCHIVE_MALFORMED;
        /* No kind is known. */
        if (flags)
            return GPUSTUB_ARCHIVE_UNSUPPORTED;
    }
    return GPUSTUB_ARCHIVE_OK;
}

/* Returns the view of that index, from 0. */
static inline int gpustub_archive_view_at(const struct gpustub_archive *archive, uint32_t index, struct gpustub_archive_view *view) {
    const unsigned char *record = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_VIEWS, index), *dictionary, *list, *layers;
    uint64_t words, row;
    if (!record)
        return GPUSTUB_ARCHIVE_NONE;
    view->archive = archive;
    view->index = index;
    view->name = gpustub_archive_text(archive, record, &view->name_length);
    dictionary = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_DICTIONARIES, gpustub_archive_u32(record + 8));
    list = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_LISTS, gpustub_archive_u32(record + 16));
    layers = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_LAYER_LISTS, gpustub_archive_u32(record + 20));
    if (!view->name || !dictionary || !list || !layers)
        return GPUSTUB_ARCHIVE_MALFORMED;
    view->slots.homes = gpustub_archive_u32(dictionary + 4);
    view->slots.longest = gpustub_archive_u32(dictionary + 8);
    view->slots.first = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_SLOTS, gpustub_archive_u32(dictionary),
                                                (uint64_t)view->slots.homes + view->slots.longest);
    view->classes = gpustub_archive_u32(dictionary + 20);
    words = (uint64_t)view->classes + 1;
    row = gpustub_archive_u32(record + 12);
    view->row = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_ROWS, gpustub_archive_u32(dictionary + 16),
                                        words * gpustub_archive_u32(dictionary + 24));
    view->member_count = gpustub_archive_u32(list + 4);
    view->entries = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_ENTRIES, gpustub_archive_u32(list), view->member_count);
    view->layer_count = gpustub_archive_u32(layers + 4);
    view->layers = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_LAYER_NAMES, gpustub_archive_u32(layers), view->layer_count);
    if (!view->slots.first || !view->row || row >= gpustub_archive_u32(dictionary + 24) || !view->entries || !view->layers)
        return GPUSTUB_ARCHIVE_MALFORMED;
    view->row += (size_t)(row * words * 4);
    return GPUSTUB_ARCHIVE_OK;
}

/* Returns the view that ordinary tools see. */
static inline int gpustub_archive_default_view(const struct gpustub_archive *archive, struct gpustub_archive_view *view) {
    return archive->default_view == 0 ? (int)GPUSTUB_ARCHIVE_NONE : gpustub_archive_view_at(archive, archive->default_view - 1, view);
}

/* Returns the first slot that a name of this hash can have. */
static inline uint32_t gpustub_archive_home(uint32_t homes, uint64_t hash) {
    return (uint32_t)((hash >> 32) * homes >> 32);
}

/* Finds the view of that name. */
static inline int gpustub_archive_find_view(const struct gpustub_archive *archive, const char *name, size_t length,
                                            struct gpustub_archive_view *view) {
    uint32_t homes = archive->count[GPUSTUB_ARCHIVE_DIRECTORY] - archive->longest, walked = 0;
    const unsigned char *slot = archive->part[GPUSTUB_ARCHIVE_DIRECTORY];
    if (homes == 0)
        return GPUSTUB_ARCHIVE_NONE;
    slot += (size_t)gpustub_archive_home(homes, gpustub_archive_hash(name, length)) * 4;
    for (;; slot += 4) {
        uint32_t index = gpustub_archive_u32(slot);
        const unsigned char *record;
        const char *text;
        size_t size = 0;
        if (index == 0)
            return GPUSTUB_ARCHIVE_NONE;
        record = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_VIEWS, index - 1);
        text = record ? gpustub_archive_text(archive, record, &size) : NULL;
        if (!text)
            return GPUSTUB_ARCHIVE_MALFORMED;
        if (gpustub_archive_same(text, size, name, length))
            return gpustub_archive_view_at(archive, index - 1, view);
        if (walked++ == archive->longest)
            return GPUSTUB_ARCHIVE_NONE;
    }
}

/* Returns the name of the layer of that index, from 0. */
static inline int gpustub_archive_layer_at(const struct gpustub_archive_view *view, uint32_t index, const char **name, size_t *length) {
    if (index >= view->layer_count)
        return GPUSTUB_ARCHIVE_NONE;
    *name = gpustub_archive_text(view->archive, view->layers + (size_t)index * 8, length);
    return *name ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
}

/* ---- contents ---- */

/* Returns the contents of that index, from 0. */
static inline int gpustub_archive_contents_at(const struct gpustub_archive *archive, uint32_t index,
                                              struct gpustub_archive_contents *contents) {
    const unsigned char *record = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_CONTENTS, index);
    if (!record)
        return GPUSTUB_ARCHIVE_NONE;
    contents->archive = archive;
    contents->index = index;
    contents->offset = gpustub_archive_u64(record);
    contents->stored_size = gpustub_archive_u64(record + 8);
    contents->size = gpustub_archive_u64(record + 16);
    contents->hash = gpustub_archive_u64(record + 24);
    contents->flags = gpustub_archive_u32(record + 32);
    contents->codec = record[36];
    contents->base = gpustub_archive_u32(record + 40);
    contents->header_hash = gpustub_archive_u32(record + 44);
    if (contents->flags & ~(uint32_t)(GPUSTUB_ARCHIVE_HIDDEN | GPUSTUB_ARCHIVE_VARIANT) || contents->codec > GPUSTUB_ARCHIVE_ZSTD)
        return GPUSTUB_ARCHIVE_UNSUPPORTED;
    return GPUSTUB_ARCHIVE_OK;
}

/* Returns the bytes in the file. */
static inline int gpustub_archive_stored(const struct gpustub_archive_contents *contents, const void **data, size_t *size) {
    const struct gpustub_archive *archive = contents->archive;
    uint64_t at = contents->offset;
    int hidden = (contents->flags & GPUSTUB_ARCHIVE_HIDDEN) != 0;
    const unsigned char *from = hidden ? archive->blob : archive->bytes;
    int fits = gpustub_archive_within(at, contents->stored_size, hidden ? archive->blob_size : archive->size);
    if (!hidden) {
        if (at < 60 || !fits || (uint32_t)gpustub_archive_hash(from + at - 60, 60) != contents->header_hash)
            return GPUSTUB_ARCHIVE_MOVED;
    } else if (!fits) {
        return GPUSTUB_ARCHIVE_MALFORMED;
    }
    *data = from + at;
    *size = (size_t)contents->stored_size;
    return GPUSTUB_ARCHIVE_OK;
}

/* Returns the bytes to link. */
static inline int gpustub_archive_data(const struct gpustub_archive_contents *contents, const void **data, size_t *size) {
    if (contents->codec != GPUSTUB_ARCHIVE_PLAIN)
        return GPUSTUB_ARCHIVE_COMPRESSED;
    return contents->stored_size == contents->size ? gpustub_archive_stored(contents, data, size) : (int)GPUSTUB_ARCHIVE_MALFORMED;
}

/* Returns the base of contents, which has no base itself. GPUSTUB_ARCHIVE_NONE without one. */
static inline int gpustub_archive_base(const struct gpustub_archive_contents *contents, struct gpustub_archive_contents *base) {
    int status = contents->base == 0 ? (int)GPUSTUB_ARCHIVE_NONE
                                     : gpustub_archive_contents_at(contents->archive, contents->base - 1, base);
    if (status == GPUSTUB_ARCHIVE_OK)
        return base->base == 0 ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
    return status == GPUSTUB_ARCHIVE_NONE && contents->base != 0 ? (int)GPUSTUB_ARCHIVE_MALFORMED : status;
}

/* Returns the original of a variant, before symbols became undefined in it; otherwise the contents themselves. */
static inline int gpustub_archive_original(const struct gpustub_archive_contents *contents, struct gpustub_archive_contents *original) {
    int status;
    if (!(contents->flags & GPUSTUB_ARCHIVE_VARIANT)) {
        *original = *contents;
        return GPUSTUB_ARCHIVE_OK;
    }
    status = gpustub_archive_base(contents, original);
    return status == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_MALFORMED : status;
}

/* Decompresses `in` to exactly `out_size` bytes. `base` is a prefix or dictionary for it, or NULL. Returns 0 on success. */
typedef int (*gpustub_archive_decompressor)(void *context, unsigned codec, const void *in, size_t in_size, const void *base,
                                            size_t base_size, void *out, size_t out_size);

/* Calls a decompressor, and checks its result. */
static inline int gpustub_archive_unpack(const struct gpustub_archive_contents *contents, const void *base, size_t base_size, void *out,
                                         size_t out_size, gpustub_archive_decompressor decompressor, void *context) {
    const void *in;
    size_t in_size;
    int status = gpustub_archive_stored(contents, &in, &in_size);
    if (status != GPUSTUB_ARCHIVE_OK)
        return status;
    if (out_size != contents->size || decompressor(context, contents->codec, in, in_size, base, base_size, out, out_size) != 0 ||
        gpustub_archive_hash(out, out_size) != contents->hash)
        return GPUSTUB_ARCHIVE_DECOMPRESSION;
    return GPUSTUB_ARCHIVE_OK;
}

/* Returns the size of the scratch memory of gpustub_archive_decompress: that of a compressed base.
 * As any size in the file, it may be absurd: limit it before allocating. */
static inline int gpustub_archive_scratch_size(const struct gpustub_archive_contents *contents, uint64_t *size) {
    struct gpustub_archive_contents base;
    int status = gpustub_archive_base(contents, &base);
    *size = status == GPUSTUB_ARCHIVE_OK && contents->codec != GPUSTUB_ARCHIVE_PLAIN && base.codec != GPUSTUB_ARCHIVE_PLAIN ? base.size : 0;
    return status == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_OK : status;
}

/* Copies contents, plain or compressed, to `out`, whose size is that of the contents. `scratch` may be NULL if its size
 * is 0. */
static inline int gpustub_archive_decompress(const struct gpustub_archive_contents *contents, void *out, size_t out_size, void *scratch,
                                             size_t scratch_size, gpustub_archive_decompressor decompressor, void *context) {
    struct gpustub_archive_contents base;
    const void *data = NULL;
    size_t size = 0;
    int status;
    if (contents->codec == GPUSTUB_ARCHIVE_PLAIN) {
        status = gpustub_archive_data(contents, &data, &size);
        if (status == GPUSTUB_ARCHIVE_OK && size != out_size)
            return GPUSTUB_ARCHIVE_DECOMPRESSION;
        if (status == GPUSTUB_ARCHIVE_OK && size > 0)
            memcpy(out, data, size);
        return status;
    }
    status = gpustub_archive_base(contents, &base);
    if (status == GPUSTUB_ARCHIVE_OK && base.codec == GPUSTUB_ARCHIVE_PLAIN) {
        status = gpustub_archive_data(&base, &data, &size);
    } else if (status == GPUSTUB_ARCHIVE_OK) {
        status = gpustub_archive_unpack(&base, NULL, 0, scratch, scratch_size, decompressor, context);
        data = scratch;
        size = scratch_size;
    }
    if (status != GPUSTUB_ARCHIVE_OK && status != GPUSTUB_ARCHIVE_NONE)
        return status;
    return gpustub_archive_unpack(contents, data, size, out, out_size, decompressor, context);
}

/* ---- members and symbols ---- */

/* Returns the member at that position, from 0, in the order of the view's layers. */
static inline int gpustub_archive_member_at(const struct gpustub_archive_view *view, uint32_t position,
                                            struct gpustub_archive_member *member) {
    const unsigned char *entry;
    int status;
    if (position >= view->member_count)
        return GPUSTUB_ARCHIVE_NONE;
    entry = view->entries + (size_t)position * 16;
    member->position = position;
    member->layer = gpustub_archive_u32(entry + 12);
    member->name = gpustub_archive_text(view->archive, entry + 4, &member->name_length);
    if (!member->name || member->layer >= view->layer_count)
        return GPUSTUB_ARCHIVE_MALFORMED;
    status = gpustub_archive_contents_at(view->archive, gpustub_archive_u32(entry), &member->contents);
    return status == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_MALFORMED : status;
}

/* Returns the member that defines the symbols of a class. */
static inline int gpustub_archive_member_of(const struct gpustub_archive_view *view, uint32_t class_plus_one,
                                            struct gpustub_archive_member *member) {
    uint32_t word;
    int status;
    if (class_plus_one > view->classes)
        return GPUSTUB_ARCHIVE_MALFORMED;
    word = gpustub_archive_u32(view->row + (size_t)class_plus_one * 4);
    if (word == 0)
        return GPUSTUB_ARCHIVE_NONE;
    status = gpustub_archive_member_at(view, word - 1, member);
    return status == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_MALFORMED : status;
}

/* Finds the member that defines a symbol. The search of the layers begins with the first one, wherever the reference
 * comes from. */
static inline int gpustub_archive_find_symbol(const struct gpustub_archive_view *view, const char *symbol, size_t length,
                                              struct gpustub_archive_member *member) {
    uint64_t hash = gpustub_archive_hash(symbol, length);
    const unsigned char *slot = view->slots.first;
    uint32_t walked = 0;
    if (view->slots.homes == 0)
        return GPUSTUB_ARCHIVE_NONE;
    slot += (size_t)gpustub_archive_home(view->slots.homes, hash) * 16;
    for (;; slot += 16) {
        uint32_t found = gpustub_archive_u32(slot + 12);
        if (found == 0)
            return GPUSTUB_ARCHIVE_NONE;
        if (gpustub_archive_u32(slot) == (uint32_t)hash) {
            size_t size;
            const char *name = gpustub_archive_text(view->archive, slot + 4, &size);
            if (!name)
                return GPUSTUB_ARCHIVE_MALFORMED;
            if (gpustub_archive_same(name, size, symbol, length))
                return gpustub_archive_member_of(view, found, member);
        }
        if (walked++ == view->slots.longest)
            return GPUSTUB_ARCHIVE_NONE;
    }
}

/* Returns the next symbol, and the member that defines it. `next` is 0 before the first one. After an error the next
 * call continues. */
static inline int gpustub_archive_next_symbol(const struct gpustub_archive_view *view, uint64_t *next, const char **name, size_t *length,
                                              struct gpustub_archive_member *member) {
    uint64_t slots = (uint64_t)view->slots.homes + view->slots.longest;
    while (*next < slots) {
        const unsigned char *slot = view->slots.first + (size_t)(*next)++ * 16;
        uint32_t found = gpustub_archive_u32(slot + 12);
        int status;
        if (found == 0)
            continue;
        *name = gpustub_archive_text(view->archive, slot + 4, length);
        status = *name ? gpustub_archive_member_of(view, found, member) : (int)GPUSTUB_ARCHIVE_MALFORMED;
        if (status != GPUSTUB_ARCHIVE_NONE)
            return status;
    }
    return GPUSTUB_ARCHIVE_NONE;
}

/* ---- closure ---- */

/* The members that symbols need. */
struct gpustub_archive_closure {
    const struct gpustub_archive_view *view;
    /* internal: for each member 0, or the position of the next one plus 1; the last refers to itself */
    uint32_t *links;
    /* internal: positions plus one */
    uint32_t first, last;
};

/* Starts a closure without members. `memory` has as many numbers as the view has members. */
static inline void gpustub_archive_closure_start(struct gpustub_archive_closure *closure, const struct gpustub_archive_view *view,
                                                 uint32_t *memory) {
    uint32_t i;
    for (i = 0; i < view->member_count; i++)
        memory[i] = 0;
    closure->view = view;
    closure->links = memory;
    closure->first = closure->last = 0;
}

/* Adds the member that defines a symbol, unless it was added before. GPUSTUB_ARCHIVE_NONE if no member does. */
static inline int gpustub_archive_closure_add(struct gpustub_archive_closure *closure, const char *symbol, size_t length) {
    struct gpustub_archive_member member;
    int status = gpustub_archive_find_symbol(closure->view, symbol, length, &member);
    if (status != GPUSTUB_ARCHIVE_OK || closure->links[member.position] != 0)
        return status;
    closure->links[member.position] = member.position + 1;
    if (closure->first == 0)
        closure->first = member.position + 1;
    else
        closure->links[closure->last - 1] = member.position + 1;
    closure->last = member.position + 1;
    return GPUSTUB_ARCHIVE_OK;
}

/* Returns the next member, in the order in which they were added. The caller adds the symbols that it refers to.
 * GPUSTUB_ARCHIVE_NONE: the closure is complete. */
static inline int gpustub_archive_closure_next(struct gpustub_archive_closure *closure, struct gpustub_archive_member *member) {
    uint32_t first = closure->first;
    if (first == 0)
        return GPUSTUB_ARCHIVE_NONE;
    closure->first = closure->last == first ? 0 : closure->links[first - 1];
    return gpustub_archive_member_at(closure->view, first - 1, member);
}

/* Links a member: adds the symbols that it refers to. Returns a status; all but GPUSTUB_ARCHIVE_OK end the closure. */
typedef int (*gpustub_archive_visitor)(void *context, struct gpustub_archive_closure *closure, const struct gpustub_archive_member *member);

/* Calls `visitor` for each member that a symbol needs, beginning with the one that defines it. `memory` has as many
 * numbers as the view has members. */
static inline int gpustub_archive_visit(const struct gpustub_archive_view *view, const char *symbol, size_t length, uint32_t *memory,
                                        gpustub_archive_visitor visitor, void *context) {
    struct gpustub_archive_closure closure;
    struct gpustub_archive_member member;
    int status;
    gpustub_archive_closure_start(&closure, view, memory);
    status = gpustub_archive_closure_add(&closure, symbol, length);
    if (status != GPUSTUB_ARCHIVE_OK)
        return status;
    while ((status = gpustub_archive_closure_next(&closure, &member)) == GPUSTUB_ARCHIVE_OK) {
        status = visitor(context, &closure, &member);
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
    }
    return status == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_OK : status;
}

/* ---- targets ---- */

/* Returns the text to the next separator, and sets `text` to the rest behind it, or to NULL without a separator. */
static inline const char *gpustub_archive_word(const char **text, size_t *length, char separator, size_t *word_length) {
    const char *word = *text;
    size_t end = 0;
    while (end < *length && word[end] != separator)
        end++;
    *text = end < *length ? word + end + 1 : NULL;
    *length -= end < *length ? end + 1 : end;
    *word_length = end;
    return word;
}

/* Whether code for one of AMD's generic processors runs on a processor:
 * https://llvm.org/docs/AMDGPUUsage.html#amdgpu-generic-processor-table */
static inline int gpustub_archive_is_generic_of(const char *generic, size_t generic_length, const char *processor, size_t length) {
    /* Table of LLVM 23, with gfx940 and gfx941 of LLVM 20. */
    static const char table[] = "gfx9-generic gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c\n"
                                "gfx9-4-generic gfx940 gfx941 gfx942 gfx950\n"
                                "gfx10-1-generic gfx1010 gfx1011 gfx1012 gfx1013\n"
                                "gfx10-3-generic gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036\n"
                                "gfx11-generic gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154\n"
                                "gfx11-7-generic gfx1170 gfx1171 gfx1172\n"
                                "gfx12-generic gfx1200 gfx1201\n"
                                "gfx12-5-generic gfx1250 gfx1251\n"
                                "gfx13-generic gfx1310\n";
    const char *rest = table;
    size_t left = sizeof table - 1;
    while (rest) {
        size_t line_length, word_length;
        const char *line = gpustub_archive_word(&rest, &left, '\n', &line_length);
        const char *word = gpustub_archive_word(&line, &line_length, ' ', &word_length);
        if (!gpustub_archive_same(word, word_length, generic, generic_length))
            continue;
        while (line) {
            word = gpustub_archive_word(&line, &line_length, ' ', &word_length);
            if (gpustub_archive_same(word, word_length, processor, length))
                return 1;
        }
    }
    return 0;
}

/* Matches AMD's target ids: https://clang.llvm.org/docs/ClangOffloadBundler.html#target-id */
static inline uint32_t gpustub_archive_match_amd(const char *have, size_t have_length, const char *wanted, size_t wanted_length) {
    size_t length, wanted_processor_length;
    const char *feature, *processor = gpustub_archive_word(&have, &have_length, ':', &length);
    const char *wanted_processor = gpustub_archive_word(&wanted, &wanted_length, ':', &wanted_processor_length);
    uint32_t rank;
    if (length < 3 || memcmp(processor, "gfx", 3) != 0)
        return 0;
    if (gpustub_archive_same(processor, length, wanted_processor, wanted_processor_length))
        rank = 0x200;
    else if (gpustub_archive_is_generic_of(processor, length, wanted_processor, wanted_processor_length))
        rank = 0x100;
    else
        return 0;
    while (have) {
        const char *rest = wanted, *other;
        size_t left = wanted_length, other_length;
        int found = 0;
        feature = gpustub_archive_word(&have, &have_length, ':', &length);
        while (rest && !found) {
            other = gpustub_archive_word(&rest, &left, ':', &other_length);
            found = gpustub_archive_same(feature, length, other, other_length);
        }
        if (!found)
            return 0;
        rank++;
    }
    return rank;
}

/* An architecture of NVIDIA, by the names of nvcc. */
struct gpustub_archive_nvidia {
    /* 3: sm_90, machine code; 2: lto_90; 1: compute_90, PTX; 0: no architecture. */
    uint32_t kind;
    uint32_t number;
    /* 2: sm_90a, for this number only; 1: sm_100f, for the family; 0: none. */
    uint32_t suffix;
};

static inline struct gpustub_archive_nvidia gpustub_archive_parse_nvidia(const char *name, size_t length) {
    static const char prefixes[3][9] = {"compute_", "lto_", "sm_"};
    struct gpustub_archive_nvidia found = {0, 0, 0};
    uint32_t kind;
    size_t at = 0, digits;
    for (kind = 3; kind > 0; kind--) {
        at = strlen(prefixes[kind - 1]);
        if (length > at && memcmp(name, prefixes[kind - 1], at) == 0)
            break;
    }
    if (kind == 0 || name[at] == '0')
        return found;
    for (digits = 0; at < length && name[at] >= '0' && name[at] <= '9' && digits < 3; at++, digits++)
        found.number = found.number * 10 + (uint32_t)(name[at] - '0');
    if (at < length && (name[at] == 'a' || name[at] == 'f'))
        found.suffix = name[at++] == 'a' ? 2 : 1;
    if (digits >= 2 && at == length)
        found.kind = kind;
    return found;
}

/* Matches NVIDIA's architectures, by the rules of nvlink 13.5 for machine code, and of ptxas 12.9 and 13.5 for PTX. */
static inline uint32_t gpustub_archive_match_nvidia(const char *have, size_t have_length, const char *wanted, size_t wanted_length) {
    struct gpustub_archive_nvidia code = gpustub_archive_parse_nvidia(have, have_length);
    struct gpustub_archive_nvidia target = gpustub_archive_parse_nvidia(wanted, wanted_length);
    int same_major = code.number / 10 == target.number / 10;
    if (code.kind == 0 || target.kind != 3 || code.number > target.number)
        return 0;
    if (code.suffix == 2 ? code.number != target.number || target.suffix != 2 : !same_major && (code.suffix == 1 || code.kind == 3))
        return 0;
    /* sm_101 has a family of its own. CUDA 13 renamed it to sm_110 (PTX ISA 9.0). */
    if (code.suffix == 1 && (code.number == 101) != (target.number == 101))
        return 0;
    return code.kind << 12 | code.number << 2 | code.suffix;
}

/* Returns the offset behind a triple and `--`, or 0. */
static inline size_t gpustub_archive_after_triple(const char *name, size_t length) {
    while (length >= 2 && !(name[length - 2] == '-' && name[length - 1] == '-'))
        length--;
    return length < 2 ? 0 : length;
}

/* Returns 0 if code for the target `have` cannot be linked or run for the target `wanted`; otherwise a number that is
 * larger for a better match: for the same name; for AMD the processor itself before a generic one, then more features;
 * for NVIDIA machine code, LTO code, PTX, each by number, then with a letter. AMD's names may follow a triple and `--`,
 * as HSA reports them. For a GPU with compute capability 9.0 the name is `sm_90a`; code for `sm_90` runs on others too. */
static inline uint32_t gpustub_archive_match(const char *have, size_t have_length, const char *wanted, size_t wanted_length) {
    size_t bare, bare_wanted;
    uint32_t rank;
    if (gpustub_archive_same(have, have_length, wanted, wanted_length))
        return UINT32_MAX;
    /* Bounds the work: names of views in a hostile file may share bytes. */
    if (have_length == 0 || wanted_length == 0 || have_length > 128 || wanted_length > 128)
        return 0;
    bare = gpustub_archive_after_triple(have, have_length);
    bare_wanted = gpustub_archive_after_triple(wanted, wanted_length);
    if (gpustub_archive_same(have + bare, have_length - bare, wanted + bare_wanted, wanted_length - bare_wanted))
        return UINT32_MAX;
    rank = gpustub_archive_match_amd(have + bare, have_length - bare, wanted + bare_wanted, wanted_length - bare_wanted);
    if (rank != 0)
        return rank;
    return gpustub_archive_match_nvidia(have + bare, have_length - bare, wanted + bare_wanted, wanted_length - bare_wanted);
}

/* Finds the view whose name matches a target best, the first of equal ones: gpustub_archive_match. */
static inline int gpustub_archive_best_view(const struct gpustub_archive *archive, const char *target, size_t length,
                                            struct gpustub_archive_view *view) {
    struct gpustub_archive_view candidate;
    uint32_t index, best = 0;
    for (index = 0; index < archive->view_count; index++) {
        int status = gpustub_archive_view_at(archive, index, &candidate);
        uint32_t rank;
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
        rank = gpustub_archive_match(candidate.name, candidate.name_length, target, length);
        if (rank > best) {
            best = rank;
            *view = candidate;
        }
    }
    return best == 0 ? GPUSTUB_ARCHIVE_NONE : GPUSTUB_ARCHIVE_OK;
}

#ifdef __cplusplus
}
#endif

#endif
