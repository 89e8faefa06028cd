#define FRAMES 64

/* The call stack, as seen inside the library's function. */
int trap_frames(void **frames);
/* The call stack, as it was seen inside the library's constructor during the first call. */
int trap_constructor_frames(void **frames);
