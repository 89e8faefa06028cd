/* Prints what a reader answers about a super-archive, with the C headers alone; conformance/README.md describes the
 * lines. C99 and C++11.
 *
 *   archive-walk                       prints files from standard input: each is preceded by its size in 8 bytes, and
 *                                      its output is followed by a line with a dot
 *   archive-walk match                 prints ranks: each line of standard input has two names
 *   archive-walk best FILE TARGET      prints the best view for a target
 *   archive-walk needs FILE VIEW NAME  prints the members that a symbol needs; contents are names of symbols */
#include <gpustub_archive_verify.h>

#include <stdio.h>
#include <stdlib.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

static const char *status_name(int status) {
    static const char *const names[] = {"ok", "not-an-archive", "no-views", "unsupported", "malformed", "moved", "compressed", "decompression", "changed"};
    return status == GPUSTUB_ARCHIVE_NONE ? "none" : names[-status];
}

static void print_name(const char *word, const char *name, size_t length) {
    size_t i;
    printf("%s %s", word, length == 0 ? "\\" : "");
    for (i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte > ' ' && byte < 127 && byte != '\\')
            putchar(byte);
        else
            printf("\\x%02x", byte);
    }
}

#ifdef WITH_ZSTD
#include <gpustub_archive_zstd.h>
#define unpack gpustub_archive_zstd
#else
/* Unpacks one kind of zstd frame: a header of 6 bytes and one raw block, whose header has 3. */
static int unpack(void *context, unsigned codec, const void *in, size_t in_size, const void *base, size_t base_size, void *out,
                  size_t out_size) {
    (void)context, (void)base, (void)base_size;
    if (codec != GPUSTUB_ARCHIVE_ZSTD || in_size != out_size + 9)
        return 1;
    if (out_size > 0)
        memcpy(out, (const char *)in + 9, out_size);
    return 0;
}
#endif

static void print_contents(const struct gpustub_archive *archive, uint32_t index) {
    enum { LARGE = 1 << 20 };
    struct gpustub_archive_contents contents, original;
    const void *data;
    size_t size;
    uint64_t scratch_size = 0;
    int status = gpustub_archive_contents_at(archive, index, &contents);
    if (status != GPUSTUB_ARCHIVE_OK) {
        printf("contents: %s\n", status_name(status));
        return;
    }
    printf("contents %u %llu", (unsigned)contents.flags, (unsigned long long)contents.size);
    status = gpustub_archive_data(&contents, &data, &size);
    if (status == GPUSTUB_ARCHIVE_OK)
        printf(" %016llx", (unsigned long long)gpustub_archive_hash(data, size));
    else
        printf(" %s", status_name(status));
    status = gpustub_archive_scratch_size(&contents, &scratch_size);
    if (status == GPUSTUB_ARCHIVE_OK && (contents.size > LARGE || scratch_size > LARGE)) {
        printf(" large");
    } else if (status == GPUSTUB_ARCHIVE_OK) {
        void *out = malloc((size_t)contents.size + 1), *scratch = malloc((size_t)scratch_size + 1);
        if (!out || !scratch)
            exit(1);
        status = gpustub_archive_decompress(&contents, out, (size_t)contents.size, scratch, (size_t)scratch_size, unpack, NULL);
        if (status == GPUSTUB_ARCHIVE_OK)
            printf(" %016llx", (unsigned long long)gpustub_archive_hash(out, (size_t)contents.size));
        free(out);
        free(scratch);
    }
    if (status != GPUSTUB_ARCHIVE_OK)
        printf(" %s", status_name(status));
    status = gpustub_archive_original(&contents, &original);
    if (status == GPUSTUB_ARCHIVE_OK)
        printf(" %u\n", (unsigned)original.index);
    else
        printf(" %s\n", status_name(status));
}

static void print_found(int status, const struct gpustub_archive_member *member) {
    if (status == GPUSTUB_ARCHIVE_OK)
        printf(" %u", (unsigned)member->position);
    else
        printf(" %s", status_name(status));
}

/* Members in the order in which the view's symbols need them, and again, when no other one is needed. */
static void print_needed(const struct gpustub_archive_view *view) {
    struct gpustub_archive_closure closure;
    struct gpustub_archive_member member;
    uint32_t *memory = (uint32_t *)malloc(((size_t)view->member_count + 1) * sizeof *memory);
    int status, pass;
    if (!memory)
        exit(1);
    gpustub_archive_closure_start(&closure, view, memory);
    printf("needs");
    for (pass = 0; pass < 2; pass++) {
        uint64_t next = 0;
        const char *name;
        size_t length;
        while ((status = gpustub_archive_next_symbol(view, &next, &name, &length, &member)) != GPUSTUB_ARCHIVE_NONE)
            if (status == GPUSTUB_ARCHIVE_OK)
                gpustub_archive_closure_add(&closure, name, length);
        do {
            status = gpustub_archive_closure_next(&closure, &member);
            print_found(status, &member);
        } while (status == GPUSTUB_ARCHIVE_OK);
    }
    printf("\n");
    free(memory);
}

static void print_view(const struct gpustub_archive_view *view) {
    struct gpustub_archive_view same;
    struct gpustub_archive_member member;
    const char *name;
    size_t length;
    uint64_t next = 0;
    uint32_t i;
    int status = gpustub_archive_find_view(view->archive, view->name, view->name_length, &same);
    print_name("view", view->name, view->name_length);
    printf(" %s\n", status_name(status));
    for (i = 0; (status = gpustub_archive_layer_at(view, i, &name, &length)) != GPUSTUB_ARCHIVE_NONE; i++) {
        if (status == GPUSTUB_ARCHIVE_OK)
            print_name("layer", name, length);
        else
            printf("layer: %s", status_name(status));
        printf("\n");
    }
    for (i = 0; (status = gpustub_archive_member_at(view, i, &member)) != GPUSTUB_ARCHIVE_NONE; i++) {
        if (status == GPUSTUB_ARCHIVE_OK) {
            print_name("member", member.name, member.name_length);
            printf(" %u %u\n", (unsigned)member.layer, (unsigned)member.contents.index);
        } else {
            printf("member: %s\n", status_name(status));
        }
    }
    while ((status = gpustub_archive_next_symbol(view, &next, &name, &length, &member)) != GPUSTUB_ARCHIVE_NONE) {
        if (status == GPUSTUB_ARCHIVE_OK) {
            print_name("symbol", name, length);
            print_found(status, &member);
            print_found(gpustub_archive_find_symbol(view, name, length, &member), &member);
            printf("\n");
        } else {
            printf("symbol: %s\n", status_name(status));
        }
    }
    printf("absent");
    print_found(gpustub_archive_find_symbol(view, "absent", 6, &member), &member);
    printf("\n");
    print_needed(view);
}

static void walk(const void *bytes, size_t size) {
    struct gpustub_archive archive;
    struct gpustub_archive_view view;
    uint32_t i;
    int status = gpustub_archive_open(&archive, bytes, size);
    printf("archive %s\n", status_name(status));
    if (status != GPUSTUB_ARCHIVE_OK)
        return;
    status = gpustub_archive_default_view(&archive, &view);
    if (status == GPUSTUB_ARCHIVE_OK)
        print_name("default", view.name, view.name_length);
    else
        printf("default: %s", status_name(status));
    printf("\n");
    status = gpustub_archive_best_view(&archive, "gfx1100:xnack-", 14, &view);
    if (status == GPUSTUB_ARCHIVE_OK)
        print_name("best", view.name, view.name_length);
    else
        printf("best: %s", status_name(status));
    printf("\n");
    for (i = 0; i < archive.view_count; i++) {
        status = gpustub_archive_view_at(&archive, i, &view);
        if (status == GPUSTUB_ARCHIVE_OK)
            print_view(&view);
        else
            printf("view: %s\n", status_name(status));
    }
    for (i = 0; i < archive.contents_count; i++)
        print_contents(&archive, i);
    printf("verify %s\n", status_name(gpustub_archive_verify(&archive)));
}

/* A block of just this size, so that a sanitizer finds each byte behind it. */
static unsigned char *block(size_t size) {
    unsigned char *bytes = (unsigned char *)malloc(size > 0 ? size : 1);
    if (!bytes)
        exit(1);
    return bytes;
}

static void walk_stream(void) {
    unsigned char header[8];
    while (fread(header, 1, 8, stdin) == 8) {
        size_t size = (size_t)gpustub_archive_u64(header);
        unsigned char *bytes = block(size);
        if (fread(bytes, 1, size, stdin) != size)
            exit(1);
        walk(bytes, size);
        printf(".\n");
        fflush(stdout);
        free(bytes);
    }
}

static void match_lines(void) {
    static char have[1 << 12], wanted[1 << 12];
    while (scanf("%4095s %4095s", have, wanted) == 2)
        printf("%lu\n", (unsigned long)gpustub_archive_match(have, strlen(have), wanted, strlen(wanted)));
}

static void open_file(struct gpustub_archive *archive, const char *path) {
    static unsigned char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (gpustub_archive_open(archive, bytes, size) != GPUSTUB_ARCHIVE_OK)
        exit(1);
    fclose(file);
}

/* Contents of the tests: names of symbols, separated by spaces. */
static int visit(void *context, struct gpustub_archive_closure *closure, const struct gpustub_archive_member *member) {
    const void *data = NULL;
    const char *text;
    size_t size = 0;
    int status = gpustub_archive_data(&member->contents, &data, &size);
    (void)context;
    print_name("member", member->name, member->name_length);
    printf("\n");
    for (text = size > 0 ? (const char *)data : NULL; status >= 0 && text;) {
        size_t length;
        const char *word = gpustub_archive_word(&text, &size, ' ', &length);
        status = gpustub_archive_closure_add(closure, word, length);
        if (status == GPUSTUB_ARCHIVE_NONE) {
            print_name("undefined", word, length);
            printf("\n");
        }
    }
    return status < 0 ? status : (int)GPUSTUB_ARCHIVE_OK;
}

int main(int count, char **words) {
    struct gpustub_archive archive;
    struct gpustub_archive_view view;
    int status;
#ifdef _WIN32
    /* Streams are text there, in which 1A ends the input and a line ends with two bytes. */
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
#endif
    if (count == 1) {
        walk_stream();
    } else if (strcmp(words[1], "match") == 0) {
        match_lines();
    } else if (count == 4) {
        open_file(&archive, words[2]);
        status = gpustub_archive_best_view(&archive, words[3], strlen(words[3]), &view);
        if (status == GPUSTUB_ARCHIVE_OK)
            print_name("view", view.name, view.name_length);
        else
            printf("view: %s", status_name(status));
        printf("\n");
    } else if (count == 5) {
        static uint32_t memory[64];
        open_file(&archive, words[2]);
        status = gpustub_archive_find_view(&archive, words[3], strlen(words[3]), &view);
        if (status != GPUSTUB_ARCHIVE_OK || view.member_count > 64)
            return 1;
        printf("%s\n", status_name(gpustub_archive_visit(&view, words[4], strlen(words[4]), memory, visit, NULL)));
    }
    return 0;
}
