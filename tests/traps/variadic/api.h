/* Sixteen functions, each at an address whose low byte is 0: `al`, which carries the number of
 * vector registers of a variadic call, would be 0 if it were overwritten by the target. */
#define SIXTEEN(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)

#define DECLARE(i) double trap_sum##i(int count, ...);
SIXTEEN(DECLARE)

/* Formats text as printf does; returns its length. */
int trap_format(char *buffer, size_t size, const char *format, ...);
