/* gpustub.h: queries and controls the GPU libraries that a program reaches through gpustub's stubs.
 *
 * These functions are hidden symbols: each linked image (program or shared library) with stubs has a
 * separate copy, which reports on the stubs of that image, and of the libraries of stubs that it links.
 * `library` is the name used in GpuStub.toml: "cudart". No function prints, aborts or throws.
 * Strings stay valid until the process ends, or dlclose unloads the image.
 *
 * GPUSTUB_TRACE=1 in the environment prints a line on standard error for each call, with its argument
 * registers and its result; GPUSTUB_FAIL=cudaMalloc:3=2 makes the third cudaMalloc return 2. Both are
 * read at the first call, unless the process is set-user-id. Without them, calls have no extra cost. */
#ifndef GPUSTUB_H
#define GPUSTUB_H

#ifdef __cplusplus
extern "C" {
#endif

/* Status codes of the functions below. */
enum gpustub_status {
    GPUSTUB_OK = 0,              /* done; the library is available */
    GPUSTUB_UNAVAILABLE = 1,     /* no usable library; gpustub_reason() returns the reason */
    GPUSTUB_UNKNOWN_LIBRARY = 2, /* this image has no stubs for a library of that name */
    GPUSTUB_ALREADY_BOUND = 3,   /* the library has been bound already */
    GPUSTUB_INVALID_ARGUMENT = 4 /* a null argument */
};

/* Finds, loads and binds a library, unless that has already happened. Afterwards its stubs are
 * async-signal-safe: they allocate nothing, enter no dynamic loader and leave dlerror() as it is, whether the
 * library has the function or not. Exceptions: the functions that compilers call to register device code, and
 * all functions while GPUSTUB_TRACE or GPUSTUB_FAIL is set. The first call, and the functions below, may
 * clear dlerror(). */
int gpustub_load(const char *library);

/* Returns 1 if the library can be used, else 0. Loads it unless that has already happened. */
int gpustub_is_available(const char *library);

/* Returns 1 if a call of this function would reach the real library, else 0 (library or function
 * missing, or refused because its ABI differs between the program's headers and this library). */
int gpustub_has_function(const char *library, const char *function);

/* Returns the path of the loaded file, as the loader names it; NULL if unavailable. */
const char *gpustub_path(const char *library);

/* Returns the library's version as 1000 * major + 10 * minor (12.9 is 12090); 0 if unknown or
 * unavailable. The minor part is 0 if only the major is known. */
int gpustub_version(const char *library);

/* Returns the reason why the library is unavailable, in one line; "" if it is available. */
const char *gpustub_reason(const char *library);

/* Returns a report of a few lines: the file that was chosen, the files that were tried and rejected with
 * the reasons, the functions that were bound, refused and missing. NULL if this image has no such stubs. */
const char *gpustub_report(const char *library);

/* Numbers of the functions used by this image that were bound, refused for their ABI, and missing.
 * Any pointer may be NULL. */
int gpustub_counts(const char *library, int *bound, int *refused, int *missing);

/* Uses this dlopen handle instead of searching. Must be called before the first use of the library; the
 * handle must stay open for the rest of the process. */
int gpustub_set_handle(const char *library, void *handle);

#ifdef __cplusplus
}
#endif

/* Mark of the headers: all objects and the stubs of one image must have compatible ones. Each mark is a
 * separate section group, and all define one symbol. So objects that were compiled against versions in which
 * a function has different ABI variants do not link, nor do objects whose headers differ so from
 * GpuStub.toml's `header-version`. No mark is loaded. */
#if defined(__ELF__) && defined(__GNUC__) && !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
#define GPUSTUB_DETAIL_MARK(library)                                                               \
    "gpustub_error_incompatible_header_versions_of_" library "__see_header_version_in_GpuStub_toml"
#define GPUSTUB_DETAIL_MARK_HEADERS(library, version)                                              \
    __asm__(".pushsection .gpustub.gpustub_headers_" library "_" version ", \"G\", %progbits, "     \
            "gpustub_headers_" library "_" version ", comdat\n"                                    \
            ".globl " GPUSTUB_DETAIL_MARK(library) "\n"                                            \
            ".hidden " GPUSTUB_DETAIL_MARK(library) "\n"                                           \
            GPUSTUB_DETAIL_MARK(library) ":\n"                                                     \
            ".popsection\n");
#endif
#endif

/* Once per library, not once per include: this header may precede those of the library. Versions in which
 * the ABI of a function changed, as in manifests/<library>.abi, and the major after the last known one. */
#ifdef GPUSTUB_DETAIL_MARK_HEADERS
#if defined(CUDA_VERSION) && !defined(GPUSTUB_DETAIL_MARKED_CUDA)
#define GPUSTUB_DETAIL_MARKED_CUDA
#if CUDA_VERSION >= 14000
GPUSTUB_DETAIL_MARK_HEADERS("cuda", "14.0")
#elif CUDA_VERSION >= 11080
GPUSTUB_DETAIL_MARK_HEADERS("cuda", "11.8")
#else
GPUSTUB_DETAIL_MARK_HEADERS("cuda", "0.0")
#endif
#endif
#if defined(CUDART_VERSION) && !defined(GPUSTUB_DETAIL_MARKED_CUDART)
#define GPUSTUB_DETAIL_MARKED_CUDART
#if CUDART_VERSION >= 14000
GPUSTUB_DETAIL_MARK_HEADERS("cudart", "14.0")
#elif CUDART_VERSION >= 13000
GPUSTUB_DETAIL_MARK_HEADERS("cudart", "13.0")
#elif CUDART_VERSION >= 12000
GPUSTUB_DETAIL_MARK_HEADERS("cudart", "12.0")
#elif CUDART_VERSION >= 11080
GPUSTUB_DETAIL_MARK_HEADERS("cudart", "11.8")
#else
GPUSTUB_DETAIL_MARK_HEADERS("cudart", "0.0")
#endif
#endif
#if defined(HIP_VERSION) && !defined(GPUSTUB_DETAIL_MARKED_HIP)
#define GPUSTUB_DETAIL_MARKED_HIP
#if HIP_VERSION >= 80000000
GPUSTUB_DETAIL_MARK_HEADERS("hip", "8.0")
#elif HIP_VERSION >= 70000000
GPUSTUB_DETAIL_MARK_HEADERS("hip", "7.0")
#elif HIP_VERSION >= 60000000
GPUSTUB_DETAIL_MARK_HEADERS("hip", "6.0")
#elif HIP_VERSION >= 50300000
GPUSTUB_DETAIL_MARK_HEADERS("hip", "5.3")
#else
GPUSTUB_DETAIL_MARK_HEADERS("hip", "0.0")
#endif
#endif
#endif
