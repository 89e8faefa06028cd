/* image.c: modules of the process: the one that contains this code, and libraries already loaded. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

extern const char __ImageBase[]; /* of this module, by the linker */

/* Returns the absolute path of a module's file; NULL if unknown. */
char *module_path(windows_handle module)
{
    windows_number size = MAX_NAME;
    for (;;) {
        utf16 *wide = calloc(size, sizeof *wide);
        windows_number length = wide ? GetModuleFileNameW(module, wide, size) : 0;
        char *path = length && length < size ? from_windows_path(wide) : NULL;
        free(wide);
        if (!length || length < size || size > 1 << 15) /* the longest path has 32,767 characters */
            return path;
        size *= 2;
    }
}

char *own_image_path(void)
{
    return module_path((windows_handle)__ImageBase);
}

/* Returns the load name that a file has, or NULL. Names of files have no case. */
static const struct load_name *load_name_of(const struct library *library, const char *file)
{
    for (const struct load_name *known = library->load_names; known->name; known++) {
        const char *a = known->name, *b = file;
        while (*a && (*a | 0x20) == (*b | 0x20))
            a++, b++;
        if (*a == *b)
            return known;
    }
    return NULL;
}

/* Lists the modules whose name is a load name. */
struct loaded_image *list_loaded_images(const struct library *library)
{
    size_t names = 0, count = 0;
    while (library->load_names[names].name)
        names++;
    struct loaded_image *images = calloc(names + 1, sizeof *images);
    for (size_t i = 0; images && i < names; i++) {
        void *module = loaded_library(library->load_names[i].name);
        char *path = module ? module_path(module) : NULL;
        if (!path)
            continue;
        images[count].name = &library->load_names[i];
        images[count++].path = path;
    }
    return images;
}

/* Reports the file and the toolkit major of a handle. Returns 0 if it refers to this module. */
int inspect_handle(void *handle, const struct library *library, char **path, int32_t *major)
{
    *path = module_path(handle);
    const char *slash = *path ? strrchr(*path, '/') : NULL;
    const struct load_name *name = slash ? load_name_of(library, slash + 1) : NULL;
    *major = name ? name->major : 0;
    return handle != (void *)__ImageBase;
}

/* Programs read data of a DLL through pointers: there are no copies. */
size_t object_size(const char *name, const void *address)
{
    (void)name;
    (void)address;
    return 0;
}

/* For children of a fork. */
void open_pages(const void *address, size_t size)
{
    (void)address;
    (void)size;
}

int with_read_only_pages(const void *address, size_t size,
                         int (*function)(struct pages pages, void *context), void *context)
{
    (void)address;
    return function((struct pages){NULL, size}, context);
}

void close_pages(struct pages pages)
{
    (void)pages;
}
