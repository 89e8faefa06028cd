/* Fallback cos(float): good near zero. */
float _Z3cosf(float x)
{
    return 1 - x * x / 2;
}
