/* cos(float16): two halves. */
void _Z3cosDv8_f(const float *, float *);

void _Z3cosDv16_f(const float *x, float *y)
{
    _Z3cosDv8_f(x, y);
    _Z3cosDv8_f(x + 8, y + 8);
}
