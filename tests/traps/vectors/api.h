#include <immintrin.h>

#ifdef __AVX512F__
typedef __m512i vector;
#define FILL _mm512_set1_epi32
#else
typedef __m256i vector;
#define FILL _mm256_set1_epi32
#endif

/* Eight vector arguments fill all the registers that carry them. The result is the number of lanes
 * with the passed value: argument n holds n + 1 in each. */
int trap_lanes(vector v0, vector v1, vector v2, vector v3, vector v4, vector v5, vector v6, vector v7);

vector trap_vector(vector v0, vector v1);
