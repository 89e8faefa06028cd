/* Verifies super-archives: gpustub_archive.h reads them. C99, and C++11 and later.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef GPUSTUB_ARCHIVE_VERIFY_H
#define GPUSTUB_ARCHIVE_VERIFY_H

#include "gpustub_archive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tables ---- */

static inline int gpustub_archive_are_zeros(const unsigned char *bytes, uint64_t size) {
    uint64_t i;
    for (i = 0; i < size; i++)
        if (bytes[i] != 0)
            return 0;
    return 1;
}

/* Returns the end of a part. */
static inline const unsigned char *gpustub_archive_end(const struct gpustub_archive *archive, unsigned part) {
    return archive->part[part] + (size_t)archive->count[part] * gpustub_archive_record_size(part);
}

static inline int gpustub_archive_verify_hash(const struct gpustub_archive *archive) {
    const unsigned char *blob = archive->blob;
    uint64_t size = gpustub_archive_u64(blob + 40), end = (uint64_t)(gpustub_archive_end(archive, GPUSTUB_ARCHIVE_TEXTS) - blob);
    uint64_t hash = gpustub_archive_hash(blob, 112) ^ gpustub_archive_hash(blob + 120, (size_t)(size - 120));
    return size == (end + 15) / 16 * 16 && gpustub_archive_are_zeros(blob + end, size - end) && gpustub_archive_u64(blob + 104) == 0 &&
           gpustub_archive_u64(blob + 112) == hash;
}

/* Checks the fields of contents, and the bytes against their hash unless they are compressed. */
static inline int gpustub_archive_verify_one(const struct gpustub_archive_contents *contents) {
    const struct gpustub_archive *archive = contents->archive;
    const unsigned char *record = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_CONTENTS, contents->index);
    int is_variant = (contents->flags & GPUSTUB_ARCHIVE_VARIANT) != 0, is_hidden = (contents->flags & GPUSTUB_ARCHIVE_HIDDEN) != 0;
    int is_plain = contents->codec == GPUSTUB_ARCHIVE_PLAIN;
    struct gpustub_archive_contents base;
    const void *data;
    size_t size;
    int status = gpustub_archive_base(contents, &base);
    if (status < 0)
        return status;
    if (record[38] != 0 || record[39] != 0 || record[37] >= 32 || (!is_hidden && !is_plain) || (is_hidden && contents->header_hash != 0))
        return GPUSTUB_ARCHIVE_MALFORMED;
    if (status == GPUSTUB_ARCHIVE_OK ? (!is_variant && is_plain) || (base.flags & GPUSTUB_ARCHIVE_VARIANT) : is_variant)
        return GPUSTUB_ARCHIVE_MALFORMED;
    if (!is_plain)
        return gpustub_archive_u32(archive->blob + 24) & 1 ? gpustub_archive_stored(contents, &data, &size) : (int)GPUSTUB_ARCHIVE_MALFORMED;
    status = gpustub_archive_data(contents, &data, &size);
    if (status == GPUSTUB_ARCHIVE_OK && gpustub_archive_hash(data, size) != contents->hash)
        return GPUSTUB_ARCHIVE_CHANGED;
    return status;
}

/* Checks that bytes of the blob follow `end`, after zeros alone, and sets `end` to their end. */
static inline int gpustub_archive_follow(const struct gpustub_archive *archive, uint64_t *end, uint64_t at, uint64_t size) {
    int follows = at >= *end && gpustub_archive_within(at, size, archive->blob_size) &&
                  gpustub_archive_are_zeros(archive->blob + *end, at - *end);
    *end = at + size;
    return follows;
}

static inline int gpustub_archive_verify_contents(const struct gpustub_archive *archive) {
    uint64_t end = gpustub_archive_u64(archive->blob + 40), ordinary = archive->size;
    uint32_t i;
    for (i = 0; i < archive->contents_count; i++) {
        struct gpustub_archive_contents contents;
        int status = gpustub_archive_contents_at(archive, i, &contents);
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
        /* Contents share no bytes, which bounds the work. */
        if ((contents.flags & GPUSTUB_ARCHIVE_HIDDEN) &&
            gpustub_archive_within(contents.offset, contents.stored_size, archive->blob_size)) {
            if (!gpustub_archive_follow(archive, &end, contents.offset, contents.stored_size))
                return GPUSTUB_ARCHIVE_MALFORMED;
        } else if (contents.stored_size > ordinary) {
            return GPUSTUB_ARCHIVE_MALFORMED;
        } else {
            ordinary -= contents.stored_size;
        }
        status = gpustub_archive_verify_one(&contents);
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
    }
    for (i = 0; i < archive->count[GPUSTUB_ARCHIVE_EXTENSIONS]; i++) {
        const unsigned char *one = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_EXTENSIONS, i);
        uint64_t at = gpustub_archive_u64(one + 8), size = gpustub_archive_u64(one + 16);
        if (!gpustub_archive_follow(archive, &end, at, size) ||
            gpustub_archive_hash(archive->blob + at, (size_t)size) != gpustub_archive_u64(one + 24))
            return GPUSTUB_ARCHIVE_MALFORMED;
    }
    return end == archive->blob_size ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
}

/* The name in a slot of a dictionary, of 16 bytes, or of the directory, of 4, and the lower half of its hash. Returns
 * GPUSTUB_ARCHIVE_NONE for an empty slot. */
static inline int gpustub_archive_slot_name(const struct gpustub_archive *archive, const unsigned char *slot, size_t slot_size,
                                            uint32_t classes, const char **name, size_t *length, uint32_t *half) {
    const unsigned char *record;
    if (slot_size == 16) {
        uint32_t found = gpustub_archive_u32(slot + 12);
        if (found == 0)
            return gpustub_archive_are_zeros(slot, 16) ? GPUSTUB_ARCHIVE_NONE : GPUSTUB_ARCHIVE_MALFORMED;
        if (found > classes)
            return GPUSTUB_ARCHIVE_MALFORMED;
        *name = gpustub_archive_text(archive, slot + 4, length);
        *half = gpustub_archive_u32(slot);
    } else {
        if (gpustub_archive_u32(slot) == 0)
            return GPUSTUB_ARCHIVE_NONE;
        record = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_VIEWS, gpustub_archive_u32(slot) - 1);
        *name = record ? gpustub_archive_text(archive, record, length) : NULL;
        *half = *name ? (uint32_t)gpustub_archive_hash(*name, *length) : 0;
    }
    return *name ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
}

/* Whether a hash and a name come before others. */
static inline int gpustub_archive_before(uint64_t hash, const char *name, size_t length, uint64_t other_hash, const char *other,
                                         size_t other_length) {
    size_t shorter = length < other_length ? length : other_length;
    int order = shorter == 0 ? 0 : memcmp(name, other, shorter);
    if (hash != other_hash)
        return hash < other_hash;
    return order < 0 || (order == 0 && length < other_length);
}

/* Checks that a lookup reaches each full slot, and that no two have one name. Subtracts the lengths of names from
 * `left`, which bounds the work: names share texts. */
static inline int gpustub_archive_verify_slots(const struct gpustub_archive *archive, const struct gpustub_archive_slots *slots,
                                               size_t slot_size, uint32_t classes, uint32_t symbols, uint64_t *left) {
    uint64_t at, run = 0, longest = 0, full = 0, before_hash = 0, count = (uint64_t)slots->homes + slots->longest;
    const char *before = NULL, *name;
    size_t before_length = 0, length;
    uint32_t half;
    for (at = 0; at < count; at++) {
        int status = gpustub_archive_slot_name(archive, slots->first + (size_t)at * slot_size, slot_size, classes, &name, &length, &half);
        uint64_t hash, home;
        if (status < 0)
            return status;
        if (status == GPUSTUB_ARCHIVE_NONE) {
            run = 0;
            continue;
        }
        if (length > *left)
            return GPUSTUB_ARCHIVE_MALFORMED;
        *left -= length;
        hash = gpustub_archive_hash(name, length);
        home = gpustub_archive_home(slots->homes, hash);
        /* An empty slot would end the search. */
        if (half != (uint32_t)hash || at < home || at - home > run ||
            (before && !gpustub_archive_before(before_hash, before, before_length, hash, name, length)))
            return GPUSTUB_ARCHIVE_MALFORMED;
        longest = at - home > longest ? at - home : longest;
        before = name;
        before_length = length;
        before_hash = hash;
        run++;
        full++;
    }
    return longest == slots->longest && full == symbols ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
}

/* Checks that each row begins with its largest word. */
static inline int gpustub_archive_verify_rows(const unsigned char *word, uint32_t rows, uint32_t classes) {
    uint32_t row, i;
    for (row = 0; row < rows; row++) {
        uint32_t stated = gpustub_archive_u32(word), largest = 0;
        word += 4;
        for (i = 0; i < classes; i++, word += 4)
            largest = gpustub_archive_u32(word) > largest ? gpustub_archive_u32(word) : largest;
        if (stated != largest)
            return 0;
    }
    return 1;
}

static inline int gpustub_archive_verify_dictionaries(const struct gpustub_archive *archive, uint64_t *left) {
    uint64_t next_slot = 0, next_row = 0;
    uint32_t i;
    for (i = 0; i < archive->count[GPUSTUB_ARCHIVE_DICTIONARIES]; i++) {
        const unsigned char *one = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_DICTIONARIES, i), *row;
        uint32_t first = gpustub_archive_u32(one), first_row = gpustub_archive_u32(one + 16), classes = gpustub_archive_u32(one + 20);
        uint64_t words = ((uint64_t)classes + 1) * gpustub_archive_u32(one + 24), count;
        struct gpustub_archive_slots slots;
        int status;
        slots.homes = gpustub_archive_u32(one + 4);
        slots.longest = gpustub_archive_u32(one + 8);
        count = (uint64_t)slots.homes + slots.longest;
        slots.first = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_SLOTS, first, count);
        row = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_ROWS, first_row, words);
        if (!slots.first || !row || first != next_slot || first_row != next_row || gpustub_archive_u32(one + 28) != 0)
            return GPUSTUB_ARCHIVE_MALFORMED;
        next_slot += count;
        next_row += words;
        status = gpustub_archive_verify_slots(archive, &slots, 16, classes, gpustub_archive_u32(one + 12), left);
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
        if (!gpustub_archive_verify_rows(row, gpustub_archive_u32(one + 24), classes))
            return GPUSTUB_ARCHIVE_MALFORMED;
    }
    return next_slot == archive->count[GPUSTUB_ARCHIVE_SLOTS] && next_row == archive->count[GPUSTUB_ARCHIVE_ROWS]
               ? GPUSTUB_ARCHIVE_OK
               : GPUSTUB_ARCHIVE_MALFORMED;
}

static inline int gpustub_archive_verify_lists(const struct gpustub_archive *archive) {
    uint64_t next = 0;
    size_t length;
    uint32_t i, k;
    for (i = 0; i < archive->count[GPUSTUB_ARCHIVE_LISTS]; i++) {
        const unsigned char *list = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_LISTS, i);
        uint32_t first = gpustub_archive_u32(list), count = gpustub_archive_u32(list + 4);
        uint64_t layers = 0;
        const unsigned char *entry = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_ENTRIES, first, count);
        if (!entry || first != next)
            return GPUSTUB_ARCHIVE_MALFORMED;
        for (k = 0; k < count; k++, entry += 16) {
            uint64_t layer = (uint64_t)gpustub_archive_u32(entry + 12) + 1;
            if (gpustub_archive_u32(entry) >= archive->contents_count || !gpustub_archive_text(archive, entry + 4, &length))
                return GPUSTUB_ARCHIVE_MALFORMED;
            layers = layer > layers ? layer : layers;
        }
        if (gpustub_archive_u32(list + 8) != layers)
            return GPUSTUB_ARCHIVE_MALFORMED;
        next += count;
    }
    if (next != archive->count[GPUSTUB_ARCHIVE_ENTRIES])
        return GPUSTUB_ARCHIVE_MALFORMED;
    for (i = 0, next = 0; i < archive->count[GPUSTUB_ARCHIVE_LAYER_LISTS]; i++) {
        const unsigned char *list = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_LAYER_LISTS, i);
        uint32_t first = gpustub_archive_u32(list), count = gpustub_archive_u32(list + 4);
        const unsigned char *name = gpustub_archive_records(archive, GPUSTUB_ARCHIVE_LAYER_NAMES, first, count);
        if (!name || first != next)
            return GPUSTUB_ARCHIVE_MALFORMED;
        for (k = 0; k < count; k++, name += 8)
            if (!gpustub_archive_text(archive, name, &length))
                return GPUSTUB_ARCHIVE_MALFORMED;
        next += count;
    }
    return next == archive->count[GPUSTUB_ARCHIVE_LAYER_NAMES] ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
}

static inline int gpustub_archive_verify_views(const struct gpustub_archive *archive, uint64_t *left) {
    struct gpustub_archive_slots directory;
    uint32_t i;
    for (i = 0; i < archive->view_count; i++) {
        const unsigned char *record = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_VIEWS, i), *list;
        struct gpustub_archive_view view;
        int status = gpustub_archive_view_at(archive, i, &view);
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
        list = gpustub_archive_record(archive, GPUSTUB_ARCHIVE_LISTS, gpustub_archive_u32(record + 16));
        if (gpustub_archive_u32(view.row) > view.member_count || gpustub_archive_u32(list + 8) > view.layer_count ||
            gpustub_archive_u64(record + 24) != 0)
            return GPUSTUB_ARCHIVE_MALFORMED;
    }
    directory.first = archive->part[GPUSTUB_ARCHIVE_DIRECTORY];
    directory.longest = archive->longest;
    directory.homes = archive->count[GPUSTUB_ARCHIVE_DIRECTORY] - archive->longest;
    return gpustub_archive_verify_slots(archive, &directory, 4, 0, archive->view_count, left);
}

/* ---- what ordinary tools see ---- */

/* An iterator over the members that ordinary tools see, without the one that contains the tables. */
struct gpustub_archive_ordinary {
    uint64_t at;
    const unsigned char *names, *index;
    uint64_t names_size, index_size;
    unsigned index_width;
};

/* Returns the next member: its name, and the offset and the size of its contents. */
static inline int gpustub_archive_next_ordinary(const struct gpustub_archive *archive, struct gpustub_archive_ordinary *next,
                                                const char **name, size_t *length, uint64_t *offset, uint64_t *size) {
    uint64_t blob_at = (uint64_t)(archive->blob - archive->bytes);
    while (next->at < archive->size) {
        const unsigned char *header, *data;
        uint64_t at, i;
        unsigned field;
        if (!gpustub_archive_parse_header(archive->bytes, archive->size, next->at, &field, size)) {
            next->at = archive->size;
            return GPUSTUB_ARCHIVE_MALFORMED;
        }
        header = archive->bytes + next->at;
        data = header + 60;
        *offset = next->at + 60;
        next->at += 60 + *size + *size % 2;
        if (gpustub_archive_same(header, field, "/", 1) || gpustub_archive_same(header, field, "/SYM64/", 7)) {
            next->index = data;
            next->index_size = *size;
            next->index_width = field == 1 ? 4 : 8;
        } else if (gpustub_archive_same(header, field, "//", 2)) {
            next->names = data;
            next->names_size = *size;
        } else if (blob_at < *offset || blob_at - *offset >= *size) {
            *name = (const char *)header;
            *length = field > 0 && header[field - 1] == '/' ? field - 1 : field;
            if (header[0] != '/')
                return GPUSTUB_ARCHIVE_OK;
            /* The offset of a long name, which ends with a slash and a line feed. */
            for (i = 1, at = 0; i < field && header[i] >= '0' && header[i] <= '9'; i++)
                at = at * 10 + (uint64_t)(header[i] - '0');
            if (field == 1 || i < field || at > next->names_size)
                return GPUSTUB_ARCHIVE_MALFORMED;
            *name = (const char *)next->names + at;
            for (i = at; i + 1 < next->names_size; i++) {
                if (next->names[i] == '/' && next->names[i + 1] == '\n') {
                    *length = (size_t)(i - at);
                    return GPUSTUB_ARCHIVE_OK;
                }
            }
            return GPUSTUB_ARCHIVE_MALFORMED;
        }
    }
    return GPUSTUB_ARCHIVE_NONE;
}

/* Whether a name of the archive is that of a member: bytes that end names are replaced. */
static inline int gpustub_archive_is_name(const char *name, size_t length, const struct gpustub_archive_member *member) {
    size_t i;
    if (length != member->name_length)
        return 0;
    for (i = 0; i < length; i++) {
        char byte = member->name[i];
        if (name[i] != (byte == '\n' || byte == '/' || byte == 0 ? '_' : byte))
            return 0;
    }
    return 1;
}

static inline uint64_t gpustub_archive_big(const unsigned char *at, unsigned width) {
    return gpustub_archive_elf_word(at, width, 1);
}

/* Checks that tools that search the index find the members of the default view. `view` is NULL without one. */
static inline int gpustub_archive_verify_index(const struct gpustub_archive *archive, const struct gpustub_archive_ordinary *end,
                                               const struct gpustub_archive_view *view) {
    struct gpustub_archive_ordinary members = {8, NULL, NULL, 0, 0, 0};
    struct gpustub_archive_member found;
    uint64_t member = 0, i, next = 0, sum = 0, count = 0, names = 0, offset, size;
    unsigned width = end->index_width;
    const char *name;
    size_t length;
    int status;
    if (end->index && end->index_size >= width) {
        count = gpustub_archive_big(end->index, width);
        names = count < end->index_size / width ? (count + 1) * width : end->index_size;
    }
    for (i = 1; i <= count; i++) {
        uint64_t at;
        const unsigned char *start = end->index + names;
        const unsigned char *zero = (const unsigned char *)(names < end->index_size ? memchr(start, 0, (size_t)(end->index_size - names)) : NULL);
        if (!zero || i >= end->index_size / width)
            return GPUSTUB_ARCHIVE_MALFORMED;
        at = gpustub_archive_big(end->index + i * width, width);
        name = (const char *)start;
        length = (size_t)(zero - start);
        names += length + 1;
        /* Archivers write the symbols of one member after those of the other. */
        while (member < at) {
            const char *member_name;
            size_t member_length;
            status = gpustub_archive_next_ordinary(archive, &members, &member_name, &member_length, &offset, &size);
            if (status != GPUSTUB_ARCHIVE_OK)
                return status == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_CHANGED : status;
            member = offset - 60;
        }
        status = view ? gpustub_archive_find_symbol(view, name, length, &found) : (int)GPUSTUB_ARCHIVE_NONE;
        if (status < 0)
            return status;
        if (status == GPUSTUB_ARCHIVE_NONE || member != at || at < found.contents.offset - 60)
            return GPUSTUB_ARCHIVE_CHANGED;
        /* Each symbol of the view is subtracted below. */
        if (at == found.contents.offset - 60)
            sum += gpustub_archive_hash(name, length) + 1;
    }
    for (i = 0; view && (status = gpustub_archive_next_symbol(view, &next, &name, &length, &found)) != GPUSTUB_ARCHIVE_NONE; i++) {
        if (status != GPUSTUB_ARCHIVE_OK)
            return status;
        sum -= gpustub_archive_hash(name, length) + 1;
    }
    return sum == 0 ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_CHANGED;
}

/* Compares the ordinary members and the index with the default view. */
static inline int gpustub_archive_verify_ordinary(const struct gpustub_archive *archive) {
    struct gpustub_archive_ordinary next = {8, NULL, NULL, 0, 0, 0};
    struct gpustub_archive_view view;
    uint32_t position = 0;
    /* Headers of a hostile file may share one long name. */
    uint64_t left = archive->size, offset, size;
    const char *name;
    size_t length;
    int status, has_view = gpustub_archive_default_view(archive, &view);
    if (has_view < 0)
        return has_view;
    while ((status = gpustub_archive_next_ordinary(archive, &next, &name, &length, &offset, &size)) == GPUSTUB_ARCHIVE_OK) {
        struct gpustub_archive_member member;
        int found = has_view == GPUSTUB_ARCHIVE_OK ? gpustub_archive_member_at(&view, position, &member) : (int)GPUSTUB_ARCHIVE_NONE;
        if (found != GPUSTUB_ARCHIVE_OK)
            return found == GPUSTUB_ARCHIVE_NONE ? (int)GPUSTUB_ARCHIVE_CHANGED : found;
        if (length > left)
            return GPUSTUB_ARCHIVE_MALFORMED;
        left -= length;
        if (!gpustub_archive_is_name(name, length, &member))
            return GPUSTUB_ARCHIVE_CHANGED;
        /* The hash of those that the tables refer to is checked elsewhere. */
        if (member.contents.offset != offset) {
            const void *data;
            size_t data_size;
            found = gpustub_archive_data(&member.contents, &data, &data_size);
            if (found != GPUSTUB_ARCHIVE_OK)
                return found;
            if (!gpustub_archive_same(data, data_size, archive->bytes + offset, (size_t)size))
                return GPUSTUB_ARCHIVE_CHANGED;
        }
        if ((member.contents.flags & GPUSTUB_ARCHIVE_HIDDEN) || member.contents.size != size)
            return GPUSTUB_ARCHIVE_CHANGED;
        position++;
    }
    if (status < 0)
        return status;
    /* The byte behind an odd member. */
    if (next.at != archive->size)
        return GPUSTUB_ARCHIVE_MALFORMED;
    if (position != (has_view == GPUSTUB_ARCHIVE_OK ? view.member_count : 0))
        return GPUSTUB_ARCHIVE_CHANGED;
    return gpustub_archive_verify_index(archive, &next, has_view == GPUSTUB_ARCHIVE_OK ? &view : NULL);
}

/* Checks the tables and all contents against their hashes, that each symbol of each view is found, and that ordinary
 * tools see the default view, in time proportional to the size of the archive. Contents that are compressed are checked
 * when they are decompressed. Returns the first error: GPUSTUB_ARCHIVE_MALFORMED or GPUSTUB_ARCHIVE_UNSUPPORTED for the
 * tables, GPUSTUB_ARCHIVE_MOVED or GPUSTUB_ARCHIVE_CHANGED for contents, members and the index. */
static inline int gpustub_archive_verify(const struct gpustub_archive *archive) {
    uint64_t left = archive->count[GPUSTUB_ARCHIVE_TEXTS];
    int status = gpustub_archive_verify_hash(archive) ? GPUSTUB_ARCHIVE_OK : GPUSTUB_ARCHIVE_MALFORMED;
    if (status == GPUSTUB_ARCHIVE_OK)
        status = gpustub_archive_verify_contents(archive);
    if (status == GPUSTUB_ARCHIVE_OK)
        status = gpustub_archive_verify_dictionaries(archive, &left);
    if (status == GPUSTUB_ARCHIVE_OK)
        status = gpustub_archive_verify_lists(archive);
    if (status == GPUSTUB_ARCHIVE_OK)
        status = gpustub_archive_verify_views(archive, &left);
    return status == GPUSTUB_ARCHIVE_OK ? gpustub_archive_verify_ordinary(archive) : status;
}

#ifdef __cplusplus
}
#endif

#endif
