/* Library of the program: 1234, if each argument arrives. */
int acmeMix(int a, double b, long long c, float d, long e, double f, long long g, int h, const int *i)
{
    int all = a == 1 && b == 2.0 && c == 3LL << 40 && d == 4.0f && e == 5 && f == 6.0 && g == -7 && h == 8 && *i == 9;
    return all ? 1234 : -1;
}
