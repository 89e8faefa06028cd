/* Device code of HIP in this image, whose objects are in other images: registered once, at their first call.
 * gpustub_hip.inc has a line FUNCTION(name) for each object. The assembly of the device link defines code and handle. */

#define HIDDEN __attribute__((visibility("hidden")))

extern HIDDEN const char gpustub_hip_code[];
/* Also that of objects in this image. */
extern HIDDEN void **gpustub_hip_handle;

void **__hipRegisterFatBinary(const void *wrapper);
void __hipUnregisterFatBinary(void **handle);

/* As clang writes it (clang/lib/CodeGen/CGCUDANV.cpp: HIPFatMagic, version 1). */
static const struct {
    unsigned magic, version;
    const char *code;
    const void *unused;
} wrapper = {0x48495046, 1, gpustub_hip_code, 0};

static void **registered(void)
{
    if (!gpustub_hip_handle)
        gpustub_hip_handle = __hipRegisterFatBinary(&wrapper);
    return gpustub_hip_handle;
}

#define FUNCTION(name) \
    __attribute__((visibility("default"))) void **name(void) { return registered(); }
#include "gpustub_hip.inc"

/* Objects in this image do it at exit, and clear the handle. */
__attribute__((destructor)) static void unregister(void)
{
    if (gpustub_hip_handle)
        __hipUnregisterFatBinary(gpustub_hip_handle);
    gpustub_hip_handle = 0;
}
