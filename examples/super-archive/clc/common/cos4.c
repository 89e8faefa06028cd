/* cos(float4): number by number, with the family's cos(float). */
float _Z3cosf(float);

void _Z3cosDv4_f(const float *x, float *y)
{
    for (int i = 0; i < 4; i++)
        y[i] = _Z3cosf(x[i]);
}
