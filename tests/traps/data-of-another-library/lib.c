/* Data that another release of the library (OTHER) has with other sizes and kinds. */
#ifndef OTHER
const int trap_function = 1;
int trap_local = 1;
const char trap_shorter[40] = "shorter";
const char trap_longer[8] = "longer";
#else
int trap_function(void)
{
    return 1;
}
__thread int trap_local = 1;
const char trap_longer[16] = "longer, longer";
/* What follows the object in memory is not its own. */
__attribute__((visibility("hidden"))) const char all[40] = "shorter\0not of the object";
__asm__(".globl trap_shorter\n .set trap_shorter, all\n"
        ".type trap_shorter, %object\n .size trap_shorter, 8\n");
#endif

int trap_init(void)
{
    return 42;
}
