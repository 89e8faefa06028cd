/* rocblas.c: adapters of rocBLAS. The headers of 5.5, 6.4 and 7.2 were compared. For programs with headers of 6, a
 * library of 5.5 has the same function under another name (rocblas_strmm_outofplace). */
#include "adapters_words.h"

TRMM_BY_6(rocblas_strmm)
TRMM_BY_6(rocblas_dtrmm)
TRMM_BY_6(rocblas_ctrmm)
TRMM_BY_6(rocblas_ztrmm)
TRMM_BATCHED_BY_6(rocblas_strmm_batched)
TRMM_BATCHED_BY_6(rocblas_dtrmm_batched)
TRMM_BATCHED_BY_6(rocblas_ctrmm_batched)
TRMM_BATCHED_BY_6(rocblas_ztrmm_batched)
TRMM_STRIDED_BATCHED_BY_6(rocblas_strmm_strided_batched)
TRMM_STRIDED_BATCHED_BY_6(rocblas_dtrmm_strided_batched)
TRMM_STRIDED_BATCHED_BY_6(rocblas_ctrmm_strided_batched)
TRMM_STRIDED_BATCHED_BY_6(rocblas_ztrmm_strided_batched)
