/* hiprand.h names structs of rocrand.h without `struct`, which only C++ allows. */
#define __half unsigned short
#include <rocrand/rocrand.h>
typedef struct rocrand_generator_base_type rocrand_generator_base_type;
typedef struct rocrand_discrete_distribution_st rocrand_discrete_distribution_st;
#include <hiprand/hiprand.h>
