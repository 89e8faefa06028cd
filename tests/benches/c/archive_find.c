/* Lookups with the C header, in the same loops as those of benches/archive/lookup.rs. */
#include "gpustub_archive.h"

enum { MAX_VIEWS = 256 };

struct query {
    const char *name;
    size_t length, view;
};

static struct gpustub_archive archive;
static struct gpustub_archive_view views[MAX_VIEWS];

/* Opens an archive, whose bytes stay in use. */
int bench_use(const void *bytes, size_t size) {
    uint32_t view;
    int status = gpustub_archive_open(&archive, bytes, size);
    if (status || archive.view_count > MAX_VIEWS)
        return status ? status : GPUSTUB_ARCHIVE_UNSUPPORTED;
    for (view = 0; view < archive.view_count && !status; view++)
        status = gpustub_archive_view_at(&archive, view, &views[view]);
    return status;
}

/* Homes of the table of a view, and names in it. */
void bench_table(size_t view, uint32_t *homes, uint32_t *names) {
    const struct gpustub_archive_slots *slots = &views[view].slots;
    uint32_t slot;
    *homes = slots->homes;
    *names = 0;
    for (slot = 0; slot < slots->homes + slots->longest; slot++)
        *names += gpustub_archive_u32(slots->first + (size_t)slot * 16 + 12) != 0;
}

/* Number of queries that find a member. */
size_t bench_find(const struct query *queries, size_t count) {
    size_t at, found = 0;
    for (at = 0; at < count; at++) {
        const struct query *query = &queries[at];
        struct gpustub_archive_member member;
        found += gpustub_archive_find_symbol(&views[query->view], query->name, query->length, &member) == GPUSTUB_ARCHIVE_OK;
    }
    return found;
}

/* Number of times that a view of an archive is found. */
size_t bench_open(const void *bytes, size_t size, const char *name, size_t length, size_t times) {
    size_t found = 0;
    while (times--) {
        struct gpustub_archive opened;
        struct gpustub_archive_view view;
        found += gpustub_archive_open(&opened, bytes, size) == GPUSTUB_ARCHIVE_OK &&
                 gpustub_archive_find_view(&opened, name, length, &view) == GPUSTUB_ARCHIVE_OK;
    }
    return found;
}
