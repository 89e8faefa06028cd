/* Resolves all symbols of all views of a super-archive in a library, with the C interface. C11 and C++17. Prints a
 * line for each: view, symbol, contents. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <gpustub_archive.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" const unsigned char embedded[], embedded_end[];
#else
extern const unsigned char embedded[], embedded_end[];
#endif

static unsigned long calls;

#ifndef __cplusplus
/* glibc's own function, which every allocation reaches. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *old);

void *malloc(size_t size) { calls++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { calls++; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { calls++; return __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { calls++; return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { calls++; return __libc_memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) {
    calls++;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : 12;
}
void free(void *old) { calls++; __libc_free(old); }
#endif

#define EXPECT(what, status)                                                                            \
    do {                                                                                                \
        int got = (what);                                                                               \
        if (got != (status)) {                                                                          \
            fprintf(stderr, "line %d: %s: %d: %s\n", __LINE__, #what, got, gpustub_archive_strerror(got)); \
            exit(1);                                                                                    \
        }                                                                                               \
    } while (0)
#define OK(what) EXPECT(what, GPUSTUB_ARCHIVE_OK)
#define NONE(what) EXPECT(what, GPUSTUB_ARCHIVE_NONE)
#define REFUSED(what) EXPECT(what, GPUSTUB_ARCHIVE_ARGUMENT)

/* The pages of the archive must be read-only, so that a write would end the program. */
static void is_read_only(const void *at) {
    static char line[4096];
    unsigned long long start, end, address = (unsigned long long)(uintptr_t)at;
    char mode[5];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%llx-%llx %4s", &start, &end, mode) == 3 && start <= address && address < end)
            found = mode[0] == 'r' && mode[1] == '-';
    if (maps)
        fclose(maps);
    if (!found) {
        fprintf(stderr, "the archive is not in read-only memory\n");
        exit(1);
    }
}

static void print_member(const char *view, size_t view_length, const char *symbol, size_t length,
                         const struct gpustub_archive_member *member) {
    const void *data;
    size_t size;
    OK(gpustub_archive_member_data(member, &data, &size));
    printf("%.*s %.*s %.*s\n", (int)view_length, view, (int)length, symbol, (int)size, (const char *)data);
}

static void walk(const struct gpustub_archive *archive) {
    size_t views, members, symbols, count, index, layer, length, view_length;
    struct gpustub_archive_view view, same;
    struct gpustub_archive_member member, found;
    struct gpustub_archive_symbols rest;
    const char *name, *view_name;
    OK(gpustub_archive_view_count(archive, &views));
    OK(gpustub_archive_member_count(archive, &members));
    NONE(gpustub_archive_member_at(archive, members, &member));
    NONE(gpustub_archive_view_at(archive, views, &view));
    NONE(gpustub_archive_view(archive, "absent", 6, &view));
    REFUSED(gpustub_archive_symbol_count(&view, &symbols));
    for (size_t at = 0; at < views; at++) {
        OK(gpustub_archive_view_at(archive, at, &view));
        OK(gpustub_archive_view_name(&view, &view_name, &view_length));
        OK(gpustub_archive_view(archive, view_name, view_length, &same));
        OK(gpustub_archive_symbol_count(&same, &symbols));
        OK(gpustub_archive_symbols(&same, &rest));
        for (count = 0; gpustub_archive_next_symbol(&rest, &name, &length, &member) == 0; count++) {
            size_t one, other;
            OK(gpustub_archive_find(&view, name, length, &found));
            OK(gpustub_archive_member_index(&member, &one));
            OK(gpustub_archive_member_index(&found, &other));
            if (one != other)
                EXPECT(1, 0);
            print_member(view_name, view_length, name, length, &found);
        }
        NONE(gpustub_archive_next_symbol(&rest, &name, &length, &member));
        EXPECT(count == symbols, 1);
        NONE(gpustub_archive_find(&view, "absent", 6, &found));
        OK(gpustub_archive_view_member_count(&view, &count));
        for (index = 0; index < count; index++) {
            OK(gpustub_archive_view_member_at(&view, index, &member, &layer));
            OK(gpustub_archive_member_name(&member, &name, &length));
            printf("member %.*s of", (int)length, name);
            OK(gpustub_archive_layer_name(&view, layer, &name, &length));
            printf(" %.*s in %.*s\n", (int)length, name, (int)view_length, view_name);
        }
        NONE(gpustub_archive_view_member_at(&view, count, &member, &layer));
        OK(gpustub_archive_layer_count(&view, &count));
        NONE(gpustub_archive_layer_name(&view, count, &name, &length));
    }
    OK(gpustub_archive_default_view(archive, &view));
    OK(gpustub_archive_view_name(&view, &view_name, &view_length));
    printf("default %.*s\n", (int)view_length, view_name);
}

static void refuse(const struct gpustub_archive *archive, const void *bytes, size_t size) {
    struct gpustub_archive none;
    struct gpustub_archive_view view, no_view;
    struct gpustub_archive_member member, no_member;
    struct gpustub_archive_symbols symbols, no_symbols;
    const char *name;
    const void *data;
    size_t number;
    memset(&none, 0, sizeof none);
    memset(&no_view, 0, sizeof no_view);
    memset(&no_member, 0, sizeof no_member);
    memset(&no_symbols, 0, sizeof no_symbols);
    REFUSED(gpustub_archive_open(NULL, bytes, size));
    REFUSED(gpustub_archive_open(&none, NULL, 0));
    REFUSED(gpustub_archive_open(&none, NULL, size));
    REFUSED(gpustub_archive_open(&none, bytes, SIZE_MAX));
    REFUSED(gpustub_archive_open(&none, bytes, SIZE_MAX / 2 + 1));
    REFUSED(gpustub_archive_verify(&none));
    EXPECT(gpustub_archive_open(&none, bytes, 0), GPUSTUB_ARCHIVE_NOT_AN_ARCHIVE);
    EXPECT(gpustub_archive_open(&none, bytes, 8), GPUSTUB_ARCHIVE_NO_VIEWS);
    EXPECT(gpustub_archive_open(&none, bytes, 99) < 0, 1);
    REFUSED(gpustub_archive_verify(&none));
    REFUSED(gpustub_archive_verify(NULL));
    REFUSED(gpustub_archive_view_count(NULL, &number));
    REFUSED(gpustub_archive_view_count(archive, NULL));
    REFUSED(gpustub_archive_view(NULL, "gpu1", 4, &view));
    REFUSED(gpustub_archive_view(archive, NULL, 4, &view));
    REFUSED(gpustub_archive_view(archive, "gpu1", SIZE_MAX, &view));
    REFUSED(gpustub_archive_view(archive, "gpu1", 4, NULL));
    REFUSED(gpustub_archive_view_at(NULL, 0, &view));
    REFUSED(gpustub_archive_view_at(archive, 0, NULL));
    NONE(gpustub_archive_view_at(archive, SIZE_MAX, &view));
    REFUSED(gpustub_archive_default_view(NULL, &view));
    REFUSED(gpustub_archive_default_view(archive, NULL));
    REFUSED(gpustub_archive_member_count(NULL, &number));
    REFUSED(gpustub_archive_member_count(archive, NULL));
    REFUSED(gpustub_archive_member_at(NULL, 0, &member));
    REFUSED(gpustub_archive_member_at(archive, 0, NULL));
    NONE(gpustub_archive_member_at(archive, SIZE_MAX, &member));
    OK(gpustub_archive_view_at(archive, 0, &view));
    OK(gpustub_archive_member_at(archive, 0, &member));
    OK(gpustub_archive_symbols(&view, &symbols));
    REFUSED(gpustub_archive_view_name(NULL, &name, &number));
    REFUSED(gpustub_archive_view_name(&no_view, &name, &number));
    REFUSED(gpustub_archive_view_name(&view, NULL, &number));
    REFUSED(gpustub_archive_view_name(&view, &name, NULL));
    REFUSED(gpustub_archive_symbol_count(NULL, &number));
    REFUSED(gpustub_archive_symbol_count(&view, NULL));
    REFUSED(gpustub_archive_find(NULL, "cos", 3, &member));
    REFUSED(gpustub_archive_find(&no_view, "cos", 3, &member));
    REFUSED(gpustub_archive_find(&view, NULL, 3, &member));
    REFUSED(gpustub_archive_find(&view, "cos", SIZE_MAX, &member));
    REFUSED(gpustub_archive_find(&view, "cos", 3, NULL));
    REFUSED(gpustub_archive_symbols(NULL, &symbols));
    REFUSED(gpustub_archive_symbols(&view, NULL));
    REFUSED(gpustub_archive_next_symbol(NULL, &name, &number, &member));
    REFUSED(gpustub_archive_next_symbol(&no_symbols, &name, &number, &member));
    REFUSED(gpustub_archive_next_symbol(&symbols, NULL, &number, &member));
    REFUSED(gpustub_archive_next_symbol(&symbols, &name, NULL, &member));
    REFUSED(gpustub_archive_next_symbol(&symbols, &name, &number, NULL));
    REFUSED(gpustub_archive_view_member_count(NULL, &number));
    REFUSED(gpustub_archive_view_member_count(&view, NULL));
    REFUSED(gpustub_archive_view_member_at(NULL, 0, &member, &number));
    REFUSED(gpustub_archive_view_member_at(&view, 0, NULL, &number));
    REFUSED(gpustub_archive_view_member_at(&view, 0, &member, NULL));
    NONE(gpustub_archive_view_member_at(&view, SIZE_MAX, &member, &number));
    REFUSED(gpustub_archive_layer_count(NULL, &number));
    REFUSED(gpustub_archive_layer_count(&view, NULL));
    REFUSED(gpustub_archive_layer_name(NULL, 0, &name, &number));
    REFUSED(gpustub_archive_layer_name(&view, 0, NULL, &number));
    REFUSED(gpustub_archive_layer_name(&view, 0, &name, NULL));
    OK(gpustub_archive_member_at(archive, 0, &member));
    REFUSED(gpustub_archive_member_name(NULL, &name, &number));
    REFUSED(gpustub_archive_member_name(&no_member, &name, &number));
    REFUSED(gpustub_archive_member_name(&member, NULL, &number));
    REFUSED(gpustub_archive_member_name(&member, &name, NULL));
    REFUSED(gpustub_archive_member_data(NULL, &data, &number));
    REFUSED(gpustub_archive_member_data(&no_member, &data, &number));
    REFUSED(gpustub_archive_member_data(&member, NULL, &number));
    REFUSED(gpustub_archive_member_data(&member, &data, NULL));
    REFUSED(gpustub_archive_member_index(NULL, &number));
    REFUSED(gpustub_archive_member_index(&member, NULL));
    for (int status = -12; status < 4; status++)
        if (!gpustub_archive_strerror(status) || !*gpustub_archive_strerror(status))
            EXPECT(status, 100);
}

int main(void) {
    static char output[1 << 16];
    struct gpustub_archive archive;
    size_t size = (size_t)(embedded_end - embedded);
    unsigned long before;
    is_read_only(embedded);
    is_read_only(embedded_end - 1);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    before = calls;
    OK(gpustub_archive_open(&archive, embedded, size));
    OK(gpustub_archive_verify(&archive));
    walk(&archive);
    refuse(&archive, embedded, size);
    EXPECT(calls == before, 1);
#ifndef __cplusplus
    /* Shows that the test detects allocations. */
    free(malloc(strlen(gpustub_archive_strerror(0))));
    EXPECT(calls == before + 2, 1);
#endif
    return 0;
}
