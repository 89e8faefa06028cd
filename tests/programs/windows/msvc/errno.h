/* What the run time uses of this header of MSVC, which only Microsoft distributes. */
int *_errno(void);
#define errno (*_errno())
