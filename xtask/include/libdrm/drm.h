/* Integer types that kfd_ioctl.h uses; the real drm.h includes them too. */
#include <linux/types.h>
