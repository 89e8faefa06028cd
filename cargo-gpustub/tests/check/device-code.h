/* Traces of relocatable device code that nvcc leaves in objects and device links, without the code: sections, symbols
 * and containers as crates/image/src/device.rs reads them. */
struct wrapper { unsigned magic, version; const void *code; void *unused; };
struct entry {
    unsigned short kind, version;
    unsigned header;
    unsigned long long size;
    unsigned unused[3], arch, more[2];
    unsigned long long flags, rest[2];
};

#define ENTRY(kind, arch, flags) { kind, 0x101, sizeof(struct entry), 0, { 0 }, arch, { 0 }, flags, { 0 } }
#define PTX(arch) ENTRY(1, arch, 0)
#define SM(arch) ENTRY(2, arch, 0)
#define SM_A(arch) ENTRY(2, arch, 1 << 20)

#define CONTAINER(name, place, ...) \
    __attribute__((used, aligned(8), section(place))) static const struct { \
        unsigned magic; \
        unsigned short version, header; \
        unsigned long long size; \
        struct entry entries[sizeof (struct entry[]){ __VA_ARGS__ } / sizeof(struct entry)]; \
    } name = { 0xBA55ED50, 1, 16, sizeof (struct entry[]){ __VA_ARGS__ }, { __VA_ARGS__ } };
#define ID(name, text) __attribute__((used, section("__nv_module_id"))) static const char name[] = text;
#define WRAPPER __attribute__((used, section(".nvFatBinSegment")))

/* An object: OBJECT(_a, SM(80), PTX(80)). */
#define OBJECT(id, ...) \
    CONTAINER(code##id, "__nv_relfatbin", __VA_ARGS__) \
    WRAPPER struct wrapper __fatbinwrap##id = { 0x466243b1, 1, &code##id, 0 }; \
    ID(id##_id, #id) \
    void __cudaRegisterLinkedBinary##id(void *); \
    __attribute__((constructor)) static void start##id(void) { \
        __cudaRegisterLinkedBinary##id(&__fatbinwrap##id); \
    }

/* A device link: LINK(SM(80)) LINKS(_a) LINKS(_b). */
#define LINK(...) \
    CONTAINER(linked, ".nv_fatbin", __VA_ARGS__) \
    WRAPPER static struct wrapper link_wrapper = { 0x466243b1, 2, &linked, 0 };
#define LINKS(id) \
    ID(id##_link, "def " #id) \
    extern struct wrapper __fatbinwrap##id; \
    void __cudaRegisterLinkedBinary##id(void *object) { (void)(object == &__fatbinwrap##id); }

/* An object that needs no device link. */
#define WHOLE(...) \
    CONTAINER(whole, ".nv_fatbin", __VA_ARGS__) \
    WRAPPER static struct wrapper whole_wrapper = { 0x466243b1, 1, &whole, 0 }; \
    ID(whole_id, "__NV_MODULE_ID")

/* Names of kernels that the host code of one object uses; "" if there are none. */
#define NAMES(id, place, text) __attribute__((used, section(place))) static const char id[] = text;
#define USES(text) \
    NAMES(uses_ki, ".nvHRKI", "") NAMES(uses_ke, ".nvHRKE", text) NAMES(uses_di, ".nvHRDI", "") \
    NAMES(uses_de, ".nvHRDE", "") NAMES(uses_ci, ".nvHRCI", "") NAMES(uses_ce, ".nvHRCE", "")

/* A statically linked CUDA runtime. */
#define RUNTIME \
    const char *runtime(int n) { return n ? "/cudart.shm.%x.%x.%llx" : "startup failure in cuda runtime"; }

/* Objects of HIP whose device link is in another image, each with a function for users, and a device link's function
 * for them. */
#define HIP_OBJECT(id) \
    void run##id(void) {} \
    void **gpustub_hip_code##id(void); \
    __attribute__((constructor)) static void start_hip##id(void) { gpustub_hip_code##id(); }
#define HIP_LINKS(id) \
    void **gpustub_hip_code##id(void) { return 0; }
