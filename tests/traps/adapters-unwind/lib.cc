extern "C" int trap_version(int *version)
{
    *version = 1050;
    return 0;
}

extern "C" int trap_throw(int value, const char *temporary)
{
    if (value > 0)
        throw value + temporary[1099];
    return value;
}

/* Counts unwinding, to show that destructors run on the way. */
struct Guard {
    int *count;
    ~Guard() { ++*count; }
};

extern "C" int trap_call(int, int, int, int, int, int, int (*callback)(int), int argument, int *unwound, int last)
{
    Guard guard{unwound};
    return last == 9 ? callback(argument) + 1 : -1;
}
