/* A function in assembly whose author forgot `.type`. */
__asm__(".globl trap_untyped\n"
        "trap_untyped:\n"
#if defined(__x86_64__)
        " leal 1(%rdi), %eax\n"
        " ret\n"
#elif defined(__i386__)
        " movl 4(%esp), %eax\n"
        " incl %eax\n"
        " ret\n"
#elif defined(__aarch64__)
        " add w0, w0, #1\n"
        " ret\n"
#elif defined(__arm__)
        " add r0, r0, #1\n"
        " bx lr\n"
#elif defined(__riscv)
        " addi a0, a0, 1\n"
        " ret\n"
#elif defined(__powerpc64__)
        " addi 3, 3, 1\n"
        " blr\n"
#elif defined(__s390x__)
        " aghi %r2, 1\n"
        " br %r14\n"
#elif defined(__loongarch__)
        " addi.d $a0, $a0, 1\n"
        " ret\n"
#endif
);
