/* image.c: inspects mapped images: the one that contains this code, and libraries already loaded. */
#include "internal.h"

#include "dynamic.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* ---- the image of this code ----------------------------------------------------------------- */

struct own_image {
    uintptr_t address;
    char name[PATH_MAX]; /* as the loader names it */
    int images;          /* number visited; the first is the program */
    int has_interpreter;
    int found;
};

static int visit_own_image(struct dl_phdr_info *info, size_t size, void *context)
{
    struct own_image *own = context;
    (void)size;
    own->images++;
    for (int i = 0; i < info->dlpi_phnum; i++)
        own->has_interpreter |= own->images == 1 && info->dlpi_phdr[i].p_type == PT_INTERP;
    if (!segment_with(info, PT_LOAD, own->address))
        return 0;
    size_t length = info->dlpi_name ? strlen(info->dlpi_name) : 0;
    if (length && length < sizeof own->name)
        memcpy(own->name, info->dlpi_name, length);
    return own->found = 1;
}

/* Returns the path of the file that is mapped at an address (proc(5), /proc/pid/maps); NULL if unknown. */
static char *mapped_file(uintptr_t address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL, *path = NULL;
    size_t capacity = 0;
    while (maps && !path && getline(&line, &capacity, maps) > 0) {
        char *end, *slash = strchr(line, '/');
        uintptr_t first = strtoul(line, &end, 16), last = strtoul(end + 1, NULL, 16);
        if (slash && address - first < last - first) {
            slash[strcspn(slash, "\n")] = 0;
            path = copy_string(slash);
        }
    }
    free(line);
    if (maps)
        fclose(maps);
    return path;
}

/* Returns the absolute path of the program; NULL if unknown. `name`: as the loader has it. */
static char *program_path(const struct own_image *own, const char *name)
{
    char path[PATH_MAX];
#ifdef __linux__
    /* Started as `ld.so program`, so that /proc/self/exe is the loader: it has an interpreter, which the
     * kernel did not map. */
    int through_loader = own->has_interpreter && !getauxval(AT_BASE);
    if (!*name) /* always in glibc, which sets AT_EXECFN for `ld.so program` */
        name = (const char *)getauxval(AT_EXECFN);
#else
    int through_loader = 0;
#endif
    ssize_t length = through_loader ? -1 : readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        return copy_string(path);
    }
    /* A relative name does not hold after a chdir, but without /proc there is no other. */
    char *mapped = name && *name != '/' ? mapped_file(own->address) : NULL;
    return mapped || !name ? mapped : realpath(name, NULL);
}

/* Returns the absolute path of the file that contains this code; NULL if unknown. */
char *own_image_path(void)
{
    struct own_image *own = calloc(1, sizeof *own);
    char *path = NULL;
    if (!own)
        return NULL;
    own->address = (uintptr_t)&gpustub1_exiting;
    dl_iterate_phdr(visit_own_image, own);
    if (own->found && own->images == 1)
        path = program_path(own, own->name);
    else if (own->found)
        path = own->name[0] == '/' ? copy_string(own->name) : mapped_file(own->address);
    if (own->found && !path && *own->name)
        path = realpath(own->name, NULL);
    free(own);
    return path;
}

/* ---- majors of names ------------------------------------------------------------------------ */

/* Returns the toolkit major of a soname or symbol version: from the manifest's table, else its number, if
 * the table shows that numbers and majors agree. 0: unknown. */
static int32_t major_of_name(const struct library *library, const char *name)
{
    const struct load_name *known;
    for (known = library->load_names; known->name; known++)
        if (known->major && !strcmp(known->name, name))
            return known->major;
    for (known = library->load_names; known->name; known++) {
        const char *number = strstr(known->name, ".so.");
        size_t stem = number ? (size_t)(number + 4 - known->name) : 0;
        if (known->major && number && strtoul(number + 4, NULL, 10) == (unsigned long)known->major &&
            !strncmp(known->name, name, stem)) {
            unsigned long major = strtoul(name + stem, NULL, 10);
            return major < 10000 ? (int32_t)major : 0;
        }
    }
    return 0;
}

/* ---- libraries already loaded --------------------------------------------------------------- */

struct image_iter {
    const struct library *library;
    struct loaded_image *images;
    size_t count;
};

static int visit_image(struct dl_phdr_info *info, size_t size, void *context)
{
    struct image_iter *walk = context;
    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name)
        return 0;
    const char *soname = dynamic_of(info).soname;
    const struct load_name *name = walk->library->load_names;
    while (soname && name->name && strcmp(name->name, soname))
        name++;
    /* An unlisted major of a user-defined library is a different library. */
    if (!soname || (!name->name && (!walk->library->family ||
                                    major_of_name(walk->library, soname) <= walk->library->newest_major)))
        return 0;
    char *path = copy_string(info->dlpi_name);
    struct loaded_image *images = path ? realloc(walk->images, (walk->count + 2) * sizeof *images) : NULL;
    if (!images) {
        free(path);
        return 0;
    }
    walk->images = images;
    images[walk->count].name = name->name ? name : NULL;
    images[walk->count++].path = path;
    images[walk->count].path = NULL;
    return 0;
}

/* Lists the mapped images whose soname is a load name, or would be one in a newer manifest. */
struct loaded_image *list_loaded_images(const struct library *library)
{
    struct image_iter walk = {library, calloc(1, sizeof *walk.images), 0};
    if (walk.images)
        dl_iterate_phdr(visit_image, &walk);
    return walk.images;
}

/* ---- handles -------------------------------------------------------------------------------- */

extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden"))); /* this image's */

/* Reports the file and the toolkit major of a handle. Returns 0 if it refers to this image: an override, or
 * a link with the library's name, may lead to the stubs themselves. */
int inspect_handle(void *handle, const struct library *library, char **path, int32_t *major)
{
    struct link_map *map = NULL;
    *path = NULL;
    *major = 0;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map)
        return 1;
    *path = map->l_name && *map->l_name ? copy_string(map->l_name) : NULL;
    struct dynamic dynamic = read_dynamic((ElfW(Addr))map->l_addr, map->l_ld);
    if (dynamic.soname)
        *major = major_of_name(library, dynamic.soname);
    const ElfW(Verdef) *version = dynamic.versions;
    for (size_t i = 0; !*major && version && dynamic.strings && i < dynamic.version_count; i++) {
        const ElfW(Verdaux) *name = (const void *)((const char *)version + version->vd_aux);
        *major = major_of_name(library, dynamic.strings + name->vda_name);
        if (!version->vd_next)
            break;
        version = (const void *)((const char *)version + version->vd_next);
    }
    return !*path || map->l_ld != _DYNAMIC; /* the program's handle has no name, and searches all */
}
