/* Arguments on the stack, of any size, and stacks that end above the caller's frame. */
#include "stack/api.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"

static struct wide wide;
static struct wider wider;
static ucontext_t caller, coroutine;
static int answers;

static void enter(void) { answers = trap_answer(); }

/* The result is there, and the stack is the coroutine's, when the callee switches back and forth. */
static int pause_call(void)
{
    swapcontext(&coroutine, &caller);
    return trap_answer();
}
static void enter_twice(void) { answers = trap_call(pause_call); }

/* Makes a coroutine whose stack ends at an unmapped page. */
static void make(void (*function)(void), size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size + page - 1) / page * page;
    char *stack = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && !munmap(stack + pages, page) && !getcontext(&coroutine));
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = pages;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, function, 0);
    answers = 0;
}

static void check_coroutine(size_t size)
{
    make(enter, size);
    CHECK(!swapcontext(&caller, &coroutine) && answers == 42);
}

static void check_pause(void)
{
    make(enter_twice, 256 * 1024);
    CHECK(!swapcontext(&caller, &coroutine) && answers == 0);
    CHECK(trap_answer() == 42); /* between the parts of a call */
    CHECK(!swapcontext(&caller, &coroutine) && answers == 43);
}

static jmp_buf target;
static int leave_call(void) { longjmp(target, 7); }
static void check_jump(void)
{
    int got = setjmp(target);
    if (!got)
        trap_call(leave_call);
    CHECK(got == 7 && trap_answer() == 42);
}

int main(void)
{
    for (int i = 0; i < 100; i++)
        wide.a[i] = i;
    for (int i = 0; i < 10000; i++)
        wider.a[i] = i;
    FIRST_AND_WARM(CHECK(trap_sum(wide, 2) == 9900));
    FIRST_AND_WARM(CHECK(trap_sum_many(1, 2, 3, 4, 5, 6, 7, 8, wider, 9) == 49995045));
    FIRST_AND_WARM(check_coroutine(256 * 1024)); /* the search of a first call needs space */
    FIRST_AND_WARM(check_pause());
    FIRST_AND_WARM(check_jump());
    CHECK(trap_answer() == 42);
    check_coroutine(8 * 1024);
    PASSED();
}
