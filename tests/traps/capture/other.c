/* libtrap.so.2: another library with functions of the same names, unversioned and versioned. */
int trap_value(void);
int trap_versioned_v2(void);

int trap_value(void) { return 2; }
int trap_versioned_v2(void) { return 20; }

__asm__(".symver trap_versioned_v2, trap_versioned@@V2");
