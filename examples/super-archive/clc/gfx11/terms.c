float gfx11_terms(float z, int terms)
{
    float sum = 1;
    for (int n = terms; n > 0; n--)
        sum = 1 - z / ((2 * n - 1) * (2 * n)) * sum;
    return sum;
}
