typedef struct acmeState *acmeHandle;
typedef enum { ACME_SAFE = 1, ACME_FAST = 2, ACME_EXACT = 3 } acmeMode;
struct acmeInfo { int version; int devices; long memory; };
struct acmeRange { int end; int start; };
struct acmeOptions { int size; int depth; char reserved[56]; };

int acmeArity(acmeHandle handle, int flags);
int acmeClass(acmeHandle handle, double scale);
int acmeEnum(acmeMode mode);
int acmeGrown(struct acmeInfo *info);
int acmeMoved(const struct acmeRange *range);
int acmeResult(acmeHandle handle);
int acmeAdded(void);
typedef int acmeStatus;
acmeStatus acmeReworded(char *text, long length);
int acmeReserved(struct acmeOptions *options);
#define acmeRenamed acmeRenamed_v2
int acmeRenamed(acmeHandle handle, int flags, int more);
#define acmeAlias acmeReworded
