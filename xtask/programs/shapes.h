/* Functions of no library, for calling shapes that an API may lack (x86-64 psABI, 3.2.3
   "Parameter Passing"). Every fake library has those whose shape no unchanged function of the API has,
   and every caller calls them. */

struct shape_doubles { double x, y; };
struct shape_floats { float x, y, z; };
struct shape_mixed { double x; long n; };
struct shape_words { long a, b; };
struct shape_large { long value[9]; };

int shape_sixteen(int a0, long a1, short a2, char a3, unsigned a4, long a5, void *a6, int a7, short a8,
                  char a9, long a10, const struct shape_large *a11, struct shape_large *a12, int a13,
                  unsigned char a14, long a15);

/* Eight vector registers, and further arguments. */
int shape_floats(float a0, float a1, float a2, float a3, float a4, float a5, float a6, float a7,
                 float a8, float a9);
int shape_doubles(double a0, float a1, double a2, float a3, double a4, float a5, double a6, float a7,
                  double a8, float a9, struct shape_large *out);
int shape_turns(int a0, double a1, long a2, float a3, void *a4, double a5, char a6, float a7, long a8,
                double a9, int a10, float a11, long a12, double a13);

int shape_structs(struct shape_words a, struct shape_mixed b, struct shape_floats c,
                  struct shape_large d, struct shape_doubles e, struct shape_words f,
                  struct shape_mixed g, struct shape_words h);
/* One register is left: the struct goes to the stack, the last argument into the register. */
int shape_skips(long a0, long a1, long a2, long a3, long a4, struct shape_words a5, long a6);

void shape_nothing(long a0, double a1);
void *shape_pointer(struct shape_large *out, float a1);
float shape_float(float a0, int a1);
double shape_double(int a0, double a1);
struct shape_words shape_makes_words(long a0);
struct shape_doubles shape_makes_doubles(double a0, long a1);
struct shape_mixed shape_makes_mixed(double a0, long a1);
/* The address of the result is a hidden first argument. */
struct shape_large shape_makes_large(long a0, struct shape_large a1, double a2, long a3, long a4, long a5,
                                     long a6, long a7);
