/* hipblas.c: adapters of hipBLAS. The headers of 5.5, 6.4 and 7.2 were compared, and the source of 5.5.1 and 6.2.2
 * (ROCm/hipBLAS, library/src/amd_detail/hipblas.cpp). An adapter NAME_by_7 serves older headers on a library of
 * 7; NAME_of_7 serves headers of 7, or of 6 with HIPBLAS_V2, on an older library. In the same way for 6. */
#include "adapters_words.h"

enum { BLAS_INVALID_VALUE = 3, BLAS_NOT_SUPPORTED = 7, BLAS_INVALID_ENUM = 10 }; /* hipblasStatus_t */

/* ---- data types and compute types ------------------------------------------------------------------- */

#define numbers_by_7_limit NULL
#define numbers_of_7_limit "data types of the library, except 8-bit integers in products"

static inline int numbers_by_7(targets to, call_function *call, const char *kinds, word *words);
static inline int numbers_of_7(targets to, call_function *call, const char *kinds, word *words);

/* NUMBERS: `t` is a data type (hipblasDatatype_t, since 7 hipDataType), `c` a compute type (hipblasDatatype_t, since 7
 * hipblasComputeType_t) after the data types of the matrices. */
#include "adapters_hipblas_numbers.h"

/* hipblasDatatype_t, hipDataType, hipblasComputeType_t */
enum {
    R_16F_5 = 150, R_32F_5, R_64F_5, C_32F_5 = 154, C_64F_5, R_32I_5 = 162,
    R_8I_7 = 3, C_32F_7 = 4, C_64F_7,
    COMPUTE_16F = 0, COMPUTE_32F = 2, COMPUTE_64F = 7, COMPUTE_32I = 9,
};

/* The compute type that lets 7 compute what older libraries do for a data type as compute type, with matrices of
 * another data type: hipblasInternalGemmExTypes of 6.2.2 has the pairs in the other direction. A complex
 * compute type there means complex alpha and beta: 7 takes that from the matrices, so that both have to agree. Older
 * libraries hand all others to rocBLAS, which supports none of them. */
static inline int compute_by_7(int compute, int matrix)
{
    int is_complex = matrix == C_32F_5 || matrix == C_64F_5;
    switch (compute) {
    case R_16F_5: return is_complex ? NO_NUMBER : COMPUTE_16F;
    case R_32F_5: return is_complex ? NO_NUMBER : COMPUTE_32F;
    case R_64F_5: return is_complex ? NO_NUMBER : COMPUTE_64F;
    case R_32I_5: return is_complex ? NO_NUMBER : COMPUTE_32I;
    case C_32F_5: return is_complex ? COMPUTE_32F : NO_NUMBER;
    case C_64F_5: return is_complex ? COMPUTE_64F : NO_NUMBER;
    default: return NO_NUMBER;
    }
}

/* The same function: all other compute types are HIPBLAS_STATUS_NOT_SUPPORTED in 6.2.2. */
static inline int compute_of_7(int compute, int matrix)
{
    int is_complex = matrix == C_32F_7 || matrix == C_64F_7;
    switch (compute) {
    case COMPUTE_16F: return R_16F_5;
    case COMPUTE_32F: return is_complex ? C_32F_5 : R_32F_5;
    case COMPUTE_64F: return is_complex ? C_64F_5 : R_64F_5;
    case COMPUTE_32I: return R_32I_5;
    default: return NO_NUMBER;
    }
}

/* Data type of the first matrix. */
static inline int first_type(const char *kinds, const word *words)
{
    return (int)words[strchr(kinds, 't') - kinds];
}

/* Older libraries return HIPBLAS_STATUS_INVALID_ENUM for numbers that are no data type, before any other check. */
static inline int numbers_by_7(targets to, call_function *call, const char *kinds, word *words)
{
    int first = first_type(kinds, words);
    for (size_t i = 0; kinds[i]; i++) {
        int number = (int)words[i], theirs;
        if (kinds[i] == '.')
            continue;
        if (NEWER_NUMBER(hipblasDatatype_t_to_hipDataType, number) == NO_NUMBER)
            return BLAS_INVALID_ENUM;
        theirs = kinds[i] == 'c' ? compute_by_7(number, first)
                                 : NEWER_NUMBER(hipblasDatatype_t_to_hipDataType, number);
        if (theirs == NO_NUMBER)
            return BLAS_NOT_SUPPORTED;
        words[i] = (word)theirs;
    }
    return call(to, words);
}

/* For a data type that the library lacks, 6.2.2 returns HIPBLAS_STATUS_NOT_SUPPORTED if the function has a compute
 * type, else HIPBLAS_STATUS_INVALID_ENUM. Products of 8-bit integers have packed matrices in 5.5 on some devices
 * (hipblasInt8Datatype_t). */
static inline int numbers_of_7(targets to, call_function *call, const char *kinds, word *words)
{
    int first = first_type(kinds, words), has_compute = strchr(kinds, 'c') != NULL;
    for (size_t i = 0; kinds[i]; i++) {
        int number = (int)words[i], theirs;
        if (kinds[i] == '.')
            continue;
        theirs = kinds[i] == 'c' ? compute_of_7(number, first)
                                 : OLDER_NUMBER(hipblasDatatype_t_to_hipDataType, number);
        if (theirs == NO_NUMBER || (has_compute && kinds[i] == 't' && number == R_8I_7))
            return has_compute ? BLAS_NOT_SUPPORTED : BLAS_INVALID_ENUM;
        words[i] = (word)theirs;
    }
    return call(to, words);
}

/* ---- products with a triangular matrix --------------------------------------------------------------- */

/* `order`: as in `reordered`, then pairs of words that the form of 5.5 has once: C and B, in capitals their leading
 * dimensions, which are ints, and their strides. rocblas.h of 6.4: "If B and C are pointers to the same matrix then ldc must
 * equal ldb or rocblas_status_invalid_value will be returned." */
static inline int trmm_of_6(targets to, call_function *call, const char *order, const word *words)
{
    for (const char *pair = strchr(order, ' ') + 1; *pair; pair += 2) {
        int is_long = *pair >= 'a', first = is_long ? 'a' : 'A';
        word b = words[pair[0] - first], c = words[pair[1] - first];
        if (is_long && b != c)
            return BLAS_NOT_SUPPORTED;
        if (!is_long && (int)b != (int)c)
            return BLAS_INVALID_VALUE;
    }
    return reordered(to, call, order, words);
}

#define IN_PLACE "calls in place, with C = B and the same leading dimension and stride"
#define TRMM(function)                                                                             \
    TRMM_BY_6(function)                                                                            \
    TRMM_OF_6(function)
#define TRMM_OF_6(function)                                                                        \
    WORDS_ADAPTER(function, trmm_of_6, 14, 12, "abcdefghijkl kmLN", IN_PLACE)
#define TRMM_BATCHED(function)                                                                     \
    TRMM_BATCHED_BY_6(function)                                                                    \
    TRMM_BATCHED_OF_6(function)
#define TRMM_BATCHED_OF_6(function)                                                                \
    WORDS_ADAPTER(function, trmm_of_6, 15, 13, "abcdefghijklo kmLN", IN_PLACE)
#define TRMM_STRIDED_BATCHED(function)                                                             \
    TRMM_STRIDED_BATCHED_BY_6(function)                                                            \
    TRMM_STRIDED_BATCHED_OF_6(function)
#define TRMM_STRIDED_BATCHED_OF_6(function)                                                        \
    WORDS_ADAPTER(function, trmm_of_6, 18, 15, "abcdefghijklmnr loMPnq", IN_PLACE)
TRMM(hipblasStrmm)
TRMM(hipblasDtrmm)
TRMM(hipblasCtrmm)
TRMM(hipblasZtrmm)
TRMM_OF_6(hipblasCtrmm_v2)
TRMM_OF_6(hipblasZtrmm_v2)
TRMM_BATCHED(hipblasStrmmBatched)
TRMM_BATCHED(hipblasDtrmmBatched)
TRMM_BATCHED(hipblasCtrmmBatched)
TRMM_BATCHED(hipblasZtrmmBatched)
TRMM_BATCHED_OF_6(hipblasCtrmmBatched_v2)
TRMM_BATCHED_OF_6(hipblasZtrmmBatched_v2)
TRMM_STRIDED_BATCHED(hipblasStrmmStridedBatched)
TRMM_STRIDED_BATCHED(hipblasDtrmmStridedBatched)
TRMM_STRIDED_BATCHED(hipblasCtrmmStridedBatched)
TRMM_STRIDED_BATCHED(hipblasZtrmmStridedBatched)
TRMM_STRIDED_BATCHED_OF_6(hipblasCtrmmStridedBatched_v2)
TRMM_STRIDED_BATCHED_OF_6(hipblasZtrmmStridedBatched_v2)
