/* cos(float8): two halves. */
void _Z3cosDv4_f(const float *, float *);

void _Z3cosDv8_f(const float *x, float *y)
{
    _Z3cosDv4_f(x, y);
    _Z3cosDv4_f(x + 4, y + 4);
}
