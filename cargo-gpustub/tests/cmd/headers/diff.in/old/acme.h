typedef struct acmeContext *acmeHandle;
typedef enum { ACME_FAST = 1, ACME_EXACT = 2 } acmeMode;
struct acmeInfo { int version; int devices; };
struct acmeRange { int start; int end; };
struct acmeOptions { int size; char reserved[60]; };

int acmeArity(acmeHandle handle);
int acmeClass(acmeHandle handle, long scale);
int acmeEnum(acmeMode mode);
int acmeGrown(struct acmeInfo *info);
int acmeMoved(const struct acmeRange *range);
void acmeResult(acmeHandle handle);
int acmeRemoved(void);
int acmeReworded(const char *name, unsigned long count);
int acmeReserved(struct acmeOptions *options);
int acmeRenamed(acmeHandle handle, int flags);
#define acmeAlias acmeReworded
static inline int acmeInline(void) { return acmeRemoved(); }
