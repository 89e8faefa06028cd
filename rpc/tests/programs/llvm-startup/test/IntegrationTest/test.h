// Replaces the header of LLVM's integration tests, for programs on the fake GPU of the loader's tests.
#ifndef STARTUP_TEST_H
#define STARTUP_TEST_H

#include <cstdio>
#include <cstdlib>

// A library has no main.
#define TEST_MAIN extern "C" int test_main

#define ASSERT_TRUE(what)                                                  \
    do {                                                                   \
        if (!(what)) {                                                     \
            std::fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #what); \
            std::abort();                                                  \
        }                                                                  \
    } while (false)
#define ASSERT_EQ(left, right) ASSERT_TRUE((left) == (right))
#define EXPECT_EQ(left, right) ASSERT_EQ(left, right)

#endif
