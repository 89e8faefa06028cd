// Memory shared by client and server: a file that both map, also at the same address if it contains addresses.
#ifndef LLVM_RPC_MEMORY_H
#define LLVM_RPC_MEMORY_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// With an address, `words` are the arguments of this program.
inline void *memory(const char *path, uint64_t size, void *address = nullptr, char **words = nullptr) {
    int file = open(path, O_RDWR);
    struct stat status = {};
    if (file < 0 || fstat(file, &status) != 0 || static_cast<uint64_t>(status.st_size) < size) {
        std::fprintf(stderr, "%s: no file of %llu bytes\n", path, static_cast<unsigned long long>(size));
        std::exit(2);
    }
    int flags = MAP_SHARED | (address ? MAP_FIXED_NOREPLACE : 0);
    void *start = mmap(address, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, flags, file, 0);
    // This process happens to have something else at the address: another one has not.
    if (start == MAP_FAILED && words && setenv("MEMORY_AGAIN", "", 0) == 0 && !*getenv("MEMORY_AGAIN")) {
        setenv("MEMORY_AGAIN", "no", 1);
        execv("/proc/self/exe", words);
    }
    if (start == MAP_FAILED || (address && start != address)) {
        perror(path);
        std::exit(2);
    }
    return start;
}

#endif
