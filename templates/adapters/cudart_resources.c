/* cudart_resources.c: adapters of the CUDA runtime for textures, surfaces and external resources. */

/* ---- textures and surfaces --------------------------------------------------------------------------- */

#define NO_FLAGS "resources without flags"

static inline int has_flags(const void *resource)
{
    return resource && get_int(resource, cudaResourceDesc_13_0_flags);
}

static inline int texture_of_11_8_by_12(targets to, void *object, const void *resource,
                                        const void *texture, const void *view)
{
    char theirs[cudaTextureDesc_11_7_size] = {0};
    if (texture)
        copy_cudaTextureDesc_11_8_to_11_7(theirs, texture);
    return FUNCTION(0, (void *, const void *, const void *, const void *))(
        object, resource, texture ? theirs : NULL, view);
}

static int texture_by_13(targets to, void *object, const void *resource, const void *texture,
                         const void *view)
{
    char resource_13[cudaResourceDesc_13_0_size] = {0}, view_13[cudaResourceViewDesc_13_0_size] = {0};
    if (resource)
        copy_cudaResourceDesc_11_7_to_13_0(resource_13, resource);
    if (view)
        copy_cudaResourceViewDesc_11_7_to_13_0(view_13, view);
    return FUNCTION(0, (void *, const void *, const void *, const void *))(
        object, resource ? resource_13 : NULL, texture, view ? view_13 : NULL);
}

static inline int texture_of_11_8_by_13(targets to, void *object, const void *resource,
                                        const void *texture, const void *view)
{
    char theirs[cudaTextureDesc_11_7_size] = {0};
    if (texture)
        copy_cudaTextureDesc_11_8_to_11_7(theirs, texture);
    return texture_by_13(to, object, resource, texture ? theirs : NULL, view);
}

/* The older structs are the beginnings of the newer ones. */
static inline int texture_of_13(targets to, void *object, const void *resource, const void *texture,
                                const void *view)
{
    if (has_flags(resource))
        return NOT_SUPPORTED;
    return FUNCTION(0, (void *, const void *, const void *, const void *))(object, resource,
                                                                          texture, view);
}

#define TEXTURE_ADAPTER(function, code, limit)                                                     \
    ADAPTER(function, code,                                                                      \
            (void *object, const void *resource, const void *texture, const void *view),           \
            (to, object, resource, texture, view), limit)
TEXTURE_ADAPTER(cudaCreateTextureObject, texture_of_11_8_by_12, NULL)
TEXTURE_ADAPTER(cudaCreateTextureObject, texture_of_11_8_by_13, NULL)
TEXTURE_ADAPTER(cudaCreateTextureObject, texture_by_13, NULL)
TEXTURE_ADAPTER(cudaCreateTextureObject_v2, texture_by_13, NULL)
TEXTURE_ADAPTER(cudaCreateTextureObject, texture_of_13, NO_FLAGS)

static inline int surface_by_13(targets to, void *object, const void *resource)
{
    char theirs[cudaResourceDesc_13_0_size] = {0};
    if (resource)
        copy_cudaResourceDesc_11_7_to_13_0(theirs, resource);
    return FUNCTION(0, (void *, const void *))(object, resource ? theirs : NULL);
}

static inline int surface_of_13(targets to, void *object, const void *resource)
{
    return has_flags(resource) ? NOT_SUPPORTED
                               : FUNCTION(0, (void *, const void *))(object, resource);
}

#define SURFACE_ADAPTER(code, limit)                                                               \
    ADAPTER(cudaCreateSurfaceObject, code, (void *object, const void *resource),                   \
            (to, object, resource), limit)
SURFACE_ADAPTER(surface_by_13, NULL)
SURFACE_ADAPTER(surface_of_13, NO_FLAGS)

/* Descriptions that the library returns. The reserved end of a newer struct is zero. */
#define DESCRIPTION(code, type, from, into)                                                        \
    static inline int code(targets to, void *description, unsigned long long object)               \
    {                                                                                              \
        char theirs[type##_##from##_size] = {0};                                                   \
        int status = FUNCTION(0, (void *, unsigned long long))(description ? theirs : NULL, object); \
        if (status || !description)                                                                \
            return status;                                                                         \
        memset(description, 0, type##_##into##_size);                                              \
        copy_##type##_##from##_to_##into(description, theirs);                                     \
        return 0;                                                                                  \
    }
#define DESCRIPTION_ADAPTER(function, code)                                                        \
    ADAPTER(function, code, (void *description, unsigned long long object),                        \
            (to, description, object), NULL)
DESCRIPTION(resource_by_13, cudaResourceDesc, 13_0, 11_7)
DESCRIPTION(resource_of_13, cudaResourceDesc, 11_7, 13_0)
DESCRIPTION(view_by_13, cudaResourceViewDesc, 13_0, 11_7)
DESCRIPTION(view_of_13, cudaResourceViewDesc, 11_7, 13_0)
DESCRIPTION(texture_description_of_11_8, cudaTextureDesc, 11_7, 11_8)
DESCRIPTION_ADAPTER(cudaGetTextureObjectResourceDesc, resource_by_13)
DESCRIPTION_ADAPTER(cudaGetTextureObjectResourceDesc, resource_of_13)
DESCRIPTION_ADAPTER(cudaGetSurfaceObjectResourceDesc, resource_by_13)
DESCRIPTION_ADAPTER(cudaGetSurfaceObjectResourceDesc, resource_of_13)
DESCRIPTION_ADAPTER(cudaGetTextureObjectResourceViewDesc, view_by_13)
DESCRIPTION_ADAPTER(cudaGetTextureObjectResourceViewDesc, view_of_13)
DESCRIPTION_ADAPTER(cudaGetTextureObjectTextureDesc, texture_description_of_11_8)

/* ---- external memory and semaphores --------------------------------------------------------------------- */

/* The newer structs end with reserved bytes that must be zero, in part where the older ones have padding. */
#define IMPORTED(code, type)                                                                       \
    static inline int code(targets to, void *out, const void *description)                         \
    {                                                                                              \
        char theirs[type##_13_0_size] = {0};                                                       \
        if (description)                                                                           \
            copy_##type##_11_7_to_13_0(theirs, description);                                       \
        return FUNCTION(0, (void *, const void *))(out, description ? theirs : NULL);              \
    }
#define MAPPED(code, type)                                                                         \
    static inline int code(targets to, void *out, void *memory, const void *description)           \
    {                                                                                              \
        char theirs[type##_13_0_size] = {0};                                                       \
        if (description)                                                                           \
            copy_##type##_11_7_to_13_0(theirs, description);                                       \
        return FUNCTION(0, (void *, void *, const void *))(out, memory,                            \
                                                           description ? theirs : NULL);           \
    }
IMPORTED(memory_by_13, cudaExternalMemoryHandleDesc)
IMPORTED(semaphore_by_13, cudaExternalSemaphoreHandleDesc)
MAPPED(buffer_by_13, cudaExternalMemoryBufferDesc)
MAPPED(array_by_13, cudaExternalMemoryMipmappedArrayDesc)
ADAPTER(cudaImportExternalMemory, memory_by_13, (void *out, const void *description),
        (to, out, description), NULL)
ADAPTER(cudaImportExternalSemaphore, semaphore_by_13, (void *out, const void *description),
        (to, out, description), NULL)
ADAPTER(cudaExternalMemoryGetMappedBuffer, buffer_by_13,
        (void *out, void *memory, const void *description), (to, out, memory, description), NULL)
ADAPTER(cudaExternalMemoryGetMappedMipmappedArray, array_by_13,
        (void *out, void *memory, const void *description), (to, out, memory, description), NULL)
