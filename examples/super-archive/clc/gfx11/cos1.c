/* cos(float) of this family: as many terms as a float can use below 2, with a helper function. */
float gfx11_terms(float z, int terms);

float _Z3cosf(float x)
{
    return gfx11_terms(x * x, 8);
}
