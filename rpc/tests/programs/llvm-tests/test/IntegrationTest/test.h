// Replaces the header of LLVM's integration tests: a failed check is reported, and ends the program by a call of the host.
#ifndef LLVM_TESTS_TEST_H
#define LLVM_TESTS_TEST_H

#include <stdio.h>

#include "src/__support/OSUtil/exit.h"

#define CHECK(value, text)                                                                                             \
    if (!(value)) {                                                                                                    \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, text);                                                      \
        LIBC_NAMESPACE::internal::exit(127);                                                                           \
    }
#define ASSERT_TRUE(value) CHECK(value, #value)
#define ASSERT_EQ(left, right) CHECK((left) == (right), #left " == " #right)
#define EXPECT_EQ ASSERT_EQ
#define TEST_MAIN extern "C" int main

#endif
