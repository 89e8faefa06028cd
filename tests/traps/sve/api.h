#include <arm_sve.h>

/* z0-z7 and p0-p3 carry arguments (AAPCS64, 6.1.3). Returns the number of lanes of the eight
 * vectors that hold the vector's own number and are active in the predicate. */
int trap_lanes(svbool_t p0, svbool_t p1, svbool_t p2, svbool_t p3, svint32_t z0, svint32_t z1,
               svint32_t z2, svint32_t z3, svint32_t z4, svint32_t z5, svint32_t z6, svint32_t z7);

svint32_t trap_vector(svint32_t z0, svint32_t z1);
