/* A function in assembly whose author forgot `.type`. */
__asm__(".globl trap_untyped\n"
        "trap_untyped:\n"
#ifdef __x86_64__
        " leal 1(%rdi), %eax\n"
        " ret\n"
#else
        " add w0, w0, #1\n"
        " ret\n"
#endif
);
