/* Objects of HIP's relocatable code in a library without a device link: their constructors get the handle of the image
 * that has it. Two functions take the place of the runtime's in this library, so that no order of constructors matters,
 * and that its destructors do not unregister code of other libraries.
 * gpustub_hip.inc has a line FUNCTION(name) for each object, and SYMBOL(name) for all symbols that objects leave undefined. */

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void **gpustub_hip_handle;

#define FUNCTION(name) void **name(void);
#define SYMBOL(name) extern HIDDEN void **name __attribute__((alias("gpustub_hip_handle")));
#include "gpustub_hip.inc"
#undef FUNCTION
#undef SYMBOL

HIDDEN void **__hipRegisterFatBinary(const void *wrapper)
{
    void **handle = 0;
    (void)wrapper;
    /* One device link is over all objects: another one leaves names undefined. */
#define FUNCTION(name) handle = name();
#define SYMBOL(name)
#include "gpustub_hip.inc"
    return handle;
}

HIDDEN void __hipUnregisterFatBinary(void **handle) { (void)handle; }
