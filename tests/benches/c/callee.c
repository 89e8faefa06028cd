/* The function that percall.c calls, under one name per road. */
int benchStub(int *a, int *b)
{
    *a = 1;
    *b = 2;
    return 0;
}
int bench_plt(int *a, int *b) __attribute__((alias("benchStub")));
