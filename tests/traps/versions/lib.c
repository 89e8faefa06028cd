/* trap_old exists as trap_old@V1 only, which the linker binds in no new program; trap_both as
 * trap_both@V1 and trap_both@@V2; trap_plain@@V2. */
int trap_old_v1(void);
int trap_both_v1(void);
int trap_both_v2(void);
int trap_plain(void);

int trap_old_v1(void) { return 1; }
int trap_both_v1(void) { return 11; }
int trap_both_v2(void) { return 12; }
int trap_plain(void) { return 22; }

__asm__(".symver trap_old_v1, trap_old@V1");
__asm__(".symver trap_both_v1, trap_both@V1");
__asm__(".symver trap_both_v2, trap_both@@V2");
