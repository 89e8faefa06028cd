/* A library with a constructor that needs a lock of the program. */
void program_lock(void);
void program_unlock(void);

static void construct(void) __attribute__((constructor));
static void construct(void)
{
    program_lock();
    program_unlock();
}
