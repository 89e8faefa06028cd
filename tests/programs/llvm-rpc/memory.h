// Memory shared by client and server: a file that both map.
#ifndef LLVM_RPC_MEMORY_H
#define LLVM_RPC_MEMORY_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>

inline void *memory(const char *path, uint64_t size) {
    int file = open(path, O_RDWR);
    void *start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || start == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    return start;
}

#endif
