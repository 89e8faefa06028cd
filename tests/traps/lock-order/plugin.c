/* A plugin whose constructor takes a lock of the program, while the loader holds its own. */
void program_lock(void);

__attribute__((constructor)) static void construct(void)
{
    program_lock();
}
