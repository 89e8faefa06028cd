/* os.h: what the run time needs of the operating system. The files of os/<system> define it; the generator copies
 * those of one system beside the shared files. Paths are UTF-8, with `/` between their components. */
#ifndef GPUSTUB_OS_H
#define GPUSTUB_OS_H

/* process.c: variables, threads, memory, output */
INTERNAL int is_secure(void);
INTERNAL const char *read_env(const char *name);
INTERNAL const char *read_path(const char *name);
INTERNAL int32_t process_id(void);
INTERNAL uintptr_t thread_id(void);
INTERNAL long thread_number(void);
INTERNAL void yield_thread(void);
INTERNAL struct saved_errors save_errors(void);
INTERNAL void restore_errors(struct saved_errors errors);
INTERNAL size_t page_size(void);
INTERNAL int protect_pages(void *start, size_t length, int is_writable);
INTERNAL void write_stderr(const char *data, size_t length);

/* file.c */
INTERNAL int is_absolute(const char *path);
INTERNAL int find_file(const char *path, size_t *size);
INTERNAL int is_directory(const char *path);
INTERNAL int is_same_file(const char *a, const char *b);
INTERNAL char *real_path(const char *path);
INTERNAL char *dangling_reason(const char *path);
INTERNAL size_t read_directory(const char *directory, const char *prefix, char *paths[],
                               size_t max_paths, int *is_short);

/* file_check.c */
#define FOREIGN_FILE "a library for another processor"
#define STUB_LIBRARY "a library of stubs, not the library"
#define OWN_STUBS "the stubs themselves, not the library"
INTERNAL const char *file_objection(const char *path);
INTERNAL char *cached_file(const char *name, const char **objection);

/* toolkit_version.c */
INTERNAL int32_t toolkit_major(const struct library *library, const char *path);

/* library.c: the loader. system.h has find_symbol(handle, name), the system's own function, and for binding, which looks
 * up every stub, open_symbol_table(handle) and find_function(table, name). */
INTERNAL void *open_library(const char *name, enum role role);
INTERNAL void *loaded_library(const char *name);
INTERNAL char *open_error(const char *name, size_t size, int *is_short);
INTERNAL void *find_versioned_symbol(void *handle, const char *name, const char *version);
INTERNAL void clear_errors(void);
INTERNAL int loader_finds(void *handle, const char *name);
INTERNAL void add_loader_dirs(struct search_dirs *dirs);
INTERNAL void add_last_dirs(struct search_dirs *dirs);
INTERNAL const char *missing_loader_hint(void);

/* image.c: images of the process */
INTERNAL char *own_image_path(void);
INTERNAL struct loaded_image *list_loaded_images(const struct library *library);
INTERNAL int inspect_handle(void *handle, const struct library *library, char **path,
                            int32_t *major);

/* dynamic.c: data in images; none is copied on Windows */
struct pages {
    void *start; /* NULL: they stay read-only */
    size_t length;
};
INTERNAL size_t object_size(const char *name, const void *address);
INTERNAL void close_pages(struct pages pages);
INTERNAL void open_pages(const void *address, size_t size);
INTERNAL int with_read_only_pages(const void *address, size_t size,
                                  int (*function)(struct pages pages, void *context), void *context);

/* python.c */
INTERNAL void add_python_dirs(struct search_dirs *dirs, const struct library *library,
                              const char *own);

/* exit.c */
INTERNAL void watch_exit(void (*unbind)(void));
INTERNAL int is_closing(void);

#endif
