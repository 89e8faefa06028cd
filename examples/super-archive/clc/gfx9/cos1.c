/* cos(float) of this family: four terms. */
float _Z3cosf(float x)
{
    float z = x * x;
    return 1 - z / 2 * (1 - z / 12 * (1 - z / 30));
}
