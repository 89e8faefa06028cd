#ifdef ACME
#include <more.h>
#endif
