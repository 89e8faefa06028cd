/* hipsparse.c: adapters of hipSPARSE. The headers of 5.3, 5.7, 6.4 and 7.2 were compared, and the source of 5.3 to 6.2.2
 * (ROCm/hipSPARSE, library/src/hcc_detail or amd_detail/hipsparse.cpp). An adapter NAME_by_6 serves headers of 5 on a
 * library of 6 or later, NAME_of_6 the reverse. */
#include "adapters_words.h"

enum { SPARSE_INVALID_VALUE = 3, SPARSE_NOT_SUPPORTED = 10 }; /* hipsparseStatus_t */

/* ---- orders and algorithms ---------------------------------------------------------------------------- */

#define numbers_by_6_limit NULL
#define numbers_of_6_limit NULL

static inline int numbers_by_6(targets to, call_function *call, const char *kinds, word *words);
static inline int numbers_of_6(targets to, call_function *call, const char *kinds, word *words);

/* NUMBERS: `o` is an order, `O` a pointer to one that the library writes; `m`, `v` and `g` are algorithms of SpMM, SpMV and
 * SpGEMM. */
#include "adapters_hipsparse_numbers.h"

enum { SPGEMM_DEFAULT_5, SPGEMM_NONDETERMINISTIC_5, SPGEMM_DETERMINISTIC_5 }; /* hipsparseSpGEMMAlg_t */

static inline int number_by_6(char kind, int number)
{
    switch (kind) {
    case 'm': return NEWER_NUMBER(hipsparseSpMMAlg_t_numbers, number);
    case 'v': return NEWER_NUMBER(hipsparseSpMVAlg_t_numbers, number);
    case 'g': return NEWER_NUMBER(hipsparseSpGEMMAlg_t_numbers, number);
    default: return NEWER_NUMBER(hipsparseOrder_t_numbers, number);
    }
}

static inline int number_of_6(char kind, int number)
{
    switch (kind) {
    case 'm': return OLDER_NUMBER(hipsparseSpMMAlg_t_numbers, number);
    case 'v': return OLDER_NUMBER(hipsparseSpMVAlg_t_numbers, number);
    case 'g':
        /* Libraries of 5 have one algorithm, whatever the number; 5.5 and older do not know the later numbers. */
        number = OLDER_NUMBER(hipsparseSpGEMMAlg_t_numbers, number);
        return number > SPGEMM_DETERMINISTIC_5 ? SPGEMM_DEFAULT_5 : number;
    default: return OLDER_NUMBER(hipsparseOrder_t_numbers, number);
    }
}

/* hipsparse.h of 6.4 documents HIPSPARSE_STATUS_NOT_SUPPORTED for other algorithms, and HIPSPARSE_STATUS_INVALID_VALUE for
 * arguments of matrices. */
static inline int mapped(targets to, call_function *call, const char *kinds, word *words,
                         int (*theirs)(char, int), int (*ours)(char, int))
{
    int *order = NULL, found = 0;
    for (size_t i = 0; kinds[i]; i++) {
        if (kinds[i] == 'O' && words[i]) {
            order = (int *)words[i];
            words[i] = (word)&found;
        } else if (kinds[i] >= 'a') {
            int number = theirs(kinds[i], (int)words[i]);
            if (number == NO_NUMBER)
                return kinds[i] == 'o' ? SPARSE_INVALID_VALUE : SPARSE_NOT_SUPPORTED;
            words[i] = (word)number;
        }
    }
    int code = call(to, words);
    if (code || !order)
        return code;
    found = ours('o', found);
    if (found == NO_NUMBER)
        return SPARSE_NOT_SUPPORTED;
    put_int(order, 0, found);
    return 0;
}

static inline int numbers_by_6(targets to, call_function *call, const char *kinds, word *words)
{
    return mapped(to, call, kinds, words, number_by_6, number_of_6);
}

static inline int numbers_of_6(targets to, call_function *call, const char *kinds, word *words)
{
    return mapped(to, call, kinds, words, number_of_6, number_by_6);
}

/* ---- hipsparseSpSV_solve ------------------------------------------------------------------------------- */

/* A library of 6 keeps the buffer of the analysis, which a program of 5 passes again as the last argument. */
static inline int solve_by_6(targets to, call_function *call, const char *order, const word *words)
{
    return reordered(to, call, order, words);
}
WORDS_ADAPTER(hipsparseSpSV_solve, solve_by_6, 10, 9, "abcdefghi", NULL)
