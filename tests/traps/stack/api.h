/* Functions with arguments on the stack. */
struct wide {
    long a[100];
};
struct wider {
    long a[10000];
};

long trap_sum(struct wide wide, int factor);
long trap_sum_many(int a, int b, int c, int d, int e, int f, int g, int h, struct wider wider, int last);
int trap_answer(void);
int trap_call(int (*callback)(void));
