/* An auditor (rtld-audit(7)) that replaces a function: dlsym returns the address that it returns. */
#include <link.h>
#include <string.h>

unsigned la_version(unsigned version);
unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name);

static int replacement(void)
{
    return 43;
}

unsigned la_version(unsigned version)
{
    return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    (void)map;
    (void)namespace;
    (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name)
{
    (void)index;
    (void)from;
    (void)to;
    (void)flags;
    return strcmp(name, "trap_answer") ? (uintptr_t)symbol->st_value : (uintptr_t)replacement;
}
