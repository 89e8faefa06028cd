/* symbol-table LIBRARY: compares the lookup of binding with dlsym, for each name of the library's table of symbols: its
 * own and those that it needs. Prints their number, and how many were found without dlsym. */
#define SINGLE_UNIT
#include "format.c"
#include "process.c"
#include "dynamic.c"
#include "loader.c"
#include "symbols.c"

#include <stdio.h>

/* Returns the number of symbols: those of the hash table are the last ones. */
static uint32_t count_symbols(const struct symbol_table *table)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < table->bucket_count; i++)
        last = table->buckets[i] > last ? table->buckets[i] : last;
    if (last < table->first) /* no exported symbol */
        return table->first;
    while (!(table->chain[last - table->first] & 1))
        last++;
    return last + 1;
}

int main(int argc, char **argv)
{
    void *handle = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    int direct = 0, failures = 0;
    if (!handle) {
        printf("not loaded: %s\n", dlerror());
        return 0;
    }
    const struct symbol_table table = open_symbol_table(handle);
    uint32_t count = table.bucket_count ? count_symbols(&table) : 0;
    for (uint32_t i = 1; i < count; i++) {
        const ElfW(Sym) *symbols = table.symbols;
        const char *name = table.strings + symbols[i].st_name;
        void *own = find_in_table(&table, name), *expected = dlsym(handle, name);
        direct += own != NULL;
        if (find_function(&table, name) != expected || (own && own != expected)) {
            printf("%s: %p is not %p\n", name, own, expected);
            failures++;
        }
    }
    printf("%u symbols, %d direct\n", count, direct);
    fflush(stdout);
    _exit(failures != 0); /* not the destructors of libraries, which may need a GPU */
}
