// A program for GPUs with the client of LLVM's libc, compiled for the host: client FILE PORTS LANES WARPS WHOSE
// [ADDRESS], which is that of the file in memory. Prints the numbers of its lanes as they end. Its warps are threads;
// unchanged files of LLVM's libc, version 19 or later, call the host. Exits with 0 if all answers were correct: those of
// the server WHOSE, llvm's or ours.
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "memory.h"
#include "run.h"

#include "client.h"
#include "src/__support/OSUtil/exit.h"
#include "src/stdio/clearerr.h"
#include "src/stdio/fclose.h"
#include "src/stdio/feof.h"
#include "src/stdio/ferror.h"
#include "src/stdio/fflush.h"
#include "src/stdio/fgetc.h"
#include "src/stdio/fgets.h"
#include "src/stdio/fopen.h"
#include "src/stdio/fputc.h"
#include "src/stdio/fputs.h"
#include "src/stdio/fread.h"
#include "src/stdio/fseek.h"
#include "src/stdio/fwrite.h"
#include "src/stdio/gpu/vfprintf_utils.h"
#include "src/stdio/puts.h"
#include "src/stdio/remove.h"
#include "src/stdio/ungetc.h"
#if LLVM_MAJOR > 19
#include "src/stdio/rename.h"
#include "src/stdlib/system.h"
#endif

namespace LIBC_NAMESPACE_DECL {
#if LLVM_MAJOR >= 23
FILE *stdin = ::stdin, *stdout = ::stdout, *stderr = ::stderr;
#endif
namespace rpc {
Client client;
}
} // namespace LIBC_NAMESPACE_DECL

namespace libc = LIBC_NAMESPACE;
using libc::rpc::Buffer;
using libc::rpc::Client;
using libc::rpc::Server;
using libc::rpc::client;

namespace {
[[noreturn]] void fail(int line, const char *what) {
    std::fprintf(stderr, "client.cpp:%d: lane %u of %u: %s\n", line, warp::lane(), warp::lanes(), what);
    std::_Exit(1);
}
#define CHECK(what) ((what) ? (void)0 : fail(__LINE__, #what))

// Whether the server is LLVM's.
bool is_llvms = false;

template <auto Opcode> uint64_t ask(uint64_t word) {
    auto port = client.open<Opcode>();
    uint64_t answer = 0;
    port.send_and_recv([&](Buffer *packet, uint32_t) { packet->data[0] = word; },
                       [&](Buffer *packet, uint32_t) { answer = packet->data[0]; });
    CLOSE(port);
    return answer;
}

// LLVM's own `ftell`, in 19 to 22, requests FSEEK by mistake.
long position(FILE *file) { return static_cast<long>(ask<OPCODE(FTELL)>(libc::file::from_stream(file))); }

void increments(uint64_t id) {
    for (uint64_t n = 0; n < 10; n++)
        CHECK(ask<TEST_OPCODE(0)>(id << 32 | n) == (id << 32 | n) + 1);
}

// Sends and receives in all orders, as LLVM's test of that name does.
void interface(uint64_t id, bool end_with_recv) {
    auto port = client.open<TEST_OPCODE(1)>();
    uint64_t count = id;
    auto send = [&](uint64_t value) { port.send([=](Buffer *packet, uint32_t) { packet->data[0] = value; }); };
    auto recv = [&] { port.recv([&](Buffer *packet, uint32_t) { count = packet->data[0]; }); };
    send(end_with_recv);
    send(count);
    recv();
    CHECK(count == id + 1);
    send(count = count + 1);
    recv();
    CHECK(count == id + 3);
    send(count = count + 1);
    send(count = count + 1);
    recv();
    CHECK(count == id + 6);
    recv();
    CHECK(count == id + 7);
    if (end_with_recv) {
        send(count);
    } else {
        recv();
        CHECK(count == id + 8);
    }
    CLOSE(port);
}

// Messages of a different size for each lane.
void streams(uint64_t id) {
    for (uint64_t size : {0, 1, 55, 56, 57, 120, 121, 700}) {
        std::vector<unsigned char> sent(size ? (size + id * 37) % 800 : id % 3 ? 0 : 5);
        for (size_t at = 0; at < sent.size(); at++)
            sent[at] = static_cast<unsigned char>(at * 7 + id);
        auto port = client.open<TEST_OPCODE(2)>();
        port.send_n(sent.data(), sent.size());
        std::vector<unsigned char> received;
        void *to = nullptr;
        uint64_t got = 0;
        port.recv_n(&to, &got, [&](uint64_t n) {
            received.resize(n);
            return static_cast<void *>(received.data());
        });
        CLOSE(port);
        CHECK(got == sent.size() && received == sent);
    }
}

void memory_of(uint64_t id) {
    uint64_t address = ask<OPCODE(MALLOC)>(1000 + id);
    CHECK(address != 0);
    auto port = client.open<OPCODE(FREE)>();
    port.send([=](Buffer *packet, uint32_t) { packet->data[0] = address; });
    CLOSE(port);
}

void files(uint64_t id) {
    std::string name = "file-" + std::to_string(id);
    FILE *file = libc::fopen(name.c_str(), "w+");
    CHECK(file);
    // A different size for each lane.
    std::string text;
    for (uint64_t n = 0; n < 4 + id % 40; n++)
        text += "line " + std::to_string(n) + " of " + std::to_string(id) + "\n";
    CHECK(libc::fwrite(text.data(), 1, text.size(), file) == text.size());
    CHECK(position(file) == static_cast<long>(text.size()));
    CHECK(libc::fseek(file, 0, SEEK_SET) == 0);
    CHECK(libc::feof(file) == 0);
    // More than the size of the file.
    std::vector<char> read(text.size() + 1);
    CHECK(libc::fread(read.data(), 1, read.size(), file) == text.size());
    CHECK(std::memcmp(read.data(), text.data(), text.size()) == 0);
    CHECK(libc::feof(file) != 0 && libc::ferror(file) == 0);
    libc::clearerr(file);
    CHECK(libc::feof(file) == 0);

    CHECK(libc::fseek(file, 5 - static_cast<long>(text.size()), SEEK_END) == 0);
    CHECK(libc::fseek(file, -5, SEEK_CUR) == 0);
    CHECK(libc::fseek(file, -5, SEEK_SET) != 0);
    CHECK(position(file) == 0);
    char line[64];
    CHECK(libc::fgets(line, sizeof line, file) == line);
    CHECK(line == "line 0 of " + std::to_string(id) + "\n");
    CHECK(libc::fgets(line, 5, file) == line && !std::strcmp(line, "line"));
    CHECK(libc::ungetc('X', file) == 'X');
    CHECK(libc::fgetc(file) == 'X');
    CHECK(libc::fgetc(file) == ' ');
    CHECK(libc::ungetc(EOF, file) == EOF);
    CHECK(libc::fseek(file, 0, SEEK_END) == 0);
    CHECK(libc::fgets(line, sizeof line, file) == nullptr && libc::feof(file) != 0);
    // LLVM's fputc does not return the character.
    CHECK(libc::fputs("and ", file) >= 0 && libc::fputc('!', file) >= 0);
    CHECK(libc::fflush(file) == 0);
    CHECK(libc::fclose(file) == 0);

    // Without write access.
    file = libc::fopen(name.c_str(), "r");
    CHECK(file && libc::ferror(file) == 0);
    CHECK(libc::fwrite("x", 1, 1, file) == 0 && libc::ferror(file) != 0);
    libc::clearerr(file);
    CHECK(libc::ferror(file) == 0);
    text += "and !";
    std::string again;
    // Lanes stay together until the last one is at its end.
    while (warp::ballot(warp::mask(), libc::feof(file) == 0))
        if (libc::fgets(line, 8 + static_cast<int>(id % 7), file))
            again += line;
    CHECK(again == text);
    CHECK(libc::fclose(file) == 0);

    std::string other = "other-" + std::to_string(id);
#if LLVM_MAJOR > 19
    CHECK(libc::rename(name.c_str(), other.c_str()) == 0);
    CHECK(libc::rename(name.c_str(), other.c_str()) != 0);
    CHECK(libc::fopen(name.c_str(), "r") == nullptr);
    // Some lanes have no file.
    bool is_there = id % 2;
    if (!is_there)
        other += "-not-there";
    CHECK((libc::remove(other.c_str()) == 0) == is_there);
#else
    CHECK(libc::fopen(other.c_str(), "r") == nullptr);
    CHECK(libc::remove(name.c_str()) == 0);
    CHECK(libc::remove(name.c_str()) != 0);
#endif
}

// Arguments as compilers lay them out for calls with "..." on GPUs.
struct Arguments {
    bool packed;
    std::vector<char> bytes{};
    template <typename T> Arguments &with(T value) {
        if (!packed)
            bytes.resize((bytes.size() + sizeof value - 1) / sizeof value * sizeof value);
        const char *from = reinterpret_cast<const char *>(&value);
        bytes.insert(bytes.end(), from, from + sizeof value);
        return *this;
    }
};

template <auto Opcode> int print(FILE *to, const std::string &format, Arguments &arguments) {
    // LLVM's client reads the address of the arguments from it.
    using List = std::decay_t<va_list>;
    return libc::vfprintf_impl<Opcode>(to, format.c_str(), format.size() + 1,
                                       reinterpret_cast<List>(arguments.bytes.data()));
}

template <auto ToStream, auto ToStdout, auto ToStderr> void prints(uint64_t id, bool packed) {
    std::string name = "print-" + std::to_string(id);
    FILE *file = libc::fopen(name.c_str(), "w+");
    CHECK(file);
    // Formats that differ by lane, and strings that only some lanes have.
    std::string format, expected, text(id * 11 % 200, 's');
    Arguments arguments{packed};
    char of_c[512];
    switch (id % 4) {
    case 0:
        format = "%d|%s|%5.2f|%c|%%|%llx|%s\n";
        arguments.with(int(id)).with(text.c_str()).with(2.5).with(int('c')).with(0x123456789abcull).with("end");
        std::snprintf(of_c, sizeof of_c, format.c_str(), int(id), text.c_str(), 2.5, 'c', 0x123456789abcull, "end");
        break;
    case 1:
        format = "no arguments\n";
        std::snprintf(of_c, sizeof of_c, "%s", format.c_str());
        break;
    case 2:
        format = "%-8s|%08ld|%+g|%#o|%.3s\n";
        arguments.with("left").with(-long(id)).with(1e-7).with(8u).with(text.c_str());
        std::snprintf(of_c, sizeof of_c, format.c_str(), "left", -long(id), 1e-7, 8u, text.c_str());
        break;
    default:
        format = "%u%c%a %p\n";
        arguments.with(unsigned(id)).with(int('x')).with(1.5).with(reinterpret_cast<void *>(0x1000));
        std::snprintf(of_c, sizeof of_c, format.c_str(), unsigned(id), 'x', 1.5, reinterpret_cast<void *>(0x1000));
    }
    expected = of_c;
    CHECK(print<ToStream>(file, format, arguments) == static_cast<int>(expected.size()));
    CHECK(libc::fseek(file, 0, SEEK_SET) == 0);
    std::vector<char> read(expected.size() + 1);
    CHECK(libc::fread(read.data(), 1, read.size(), file) == expected.size());
    CHECK(std::string(read.data()) == expected);
    CHECK(libc::fclose(file) == 0);
    CHECK(libc::remove(name.c_str()) == 0);

    std::string line = std::string("printf %d ") + (packed ? "packed" : "padded") + "\n";
    Arguments number{packed};
    number.with(int(id));
    int length = static_cast<int>(std::to_string(id).size() + line.size()) - 2;
    CHECK(print<ToStdout>(stdout, line, number) == length);
    // LLVM's server writes to memory, or prints as much.
    if (!is_llvms)
        CHECK(print<ToStdout>(stdout, id % 2 ? "%d%n" : "%2147483647d", number) == -1);
    CHECK(print<ToStderr>(stderr, line, number) == length);
}

void standard(uint64_t id) {
    std::string number = std::to_string(id) + "\n", text = "fwrite " + number;
    CHECK(libc::fwrite(text.data(), 1, text.size(), stdout) == text.size());
    text = "stderr " + number;
    CHECK(libc::fwrite(text.data(), 1, text.size(), stderr) == text.size());
    text = "puts " + std::to_string(id);
    CHECK(libc::puts(text.c_str()) >= 0);
    CHECK(libc::fflush(stdout) == 0);
    // A line of the input for each lane, in any order.
    char line[64];
    CHECK(libc::fgets(line, sizeof line, stdin) == line);
    text = std::string("got ") + line;
    CHECK(libc::fputs(text.c_str(), stdout) >= 0);
}

void calls_of_the_host(uint64_t id) {
#if LLVM_MAJOR > 19
    std::string command = "exit " + std::to_string(id % 5);
    CHECK(libc::system(command.c_str()) == static_cast<int>(id % 5) << 8);
#endif
    // LLVM's server calls any address that a client sends.
    if (is_llvms)
        return;
    uint64_t arguments[2] = {id, 7}, answer = 0;
    auto port = client.open<OPCODE(HOST_CALL)>();
    port.send_n(arguments, id % 2 ? 16 : 8);
    port.send([=](Buffer *packet, uint32_t) { packet->data[0] = 100 + id; });
    port.recv([&](Buffer *packet, uint32_t) { answer = packet->data[0]; });
    CLOSE(port);
    CHECK(answer == 100 + id + id + (id % 2 ? 7 : 0));
}

void all(uint64_t id) {
    increments(id);
    interface(id, false);
    interface(id, true);
    streams(id);
    memory_of(id);
    files(id);
    prints<OPCODE(PRINTF_TO_STREAM), OPCODE(PRINTF_TO_STDOUT), OPCODE(PRINTF_TO_STDERR)>(id, false);
    prints<OPCODE(PRINTF_TO_STREAM_PACKED), OPCODE(PRINTF_TO_STDOUT_PACKED), OPCODE(PRINTF_TO_STDERR_PACKED)>(id,
                                                                                                              true);
    standard(id);
    calls_of_the_host(id);
    std::printf("%llu\n", static_cast<unsigned long long>(id));
}

// Divergence of the lanes of each warp.
std::vector<uint64_t> parts(uint32_t lanes, uint32_t warp) {
    uint64_t every = ~uint64_t(0) >> (64 - lanes);
    uint64_t some = every & 0x9e3779b97f4a7c15 >> (warp % 7);
    if (lanes == 1 || warp % 3 == 0)
        return {every};
    if (warp % 3 == 1)
        return {some, every & ~some};
    // Some take no part at all.
    uint64_t low = some & every >> (lanes / 2);
    return {low, some & ~low};
}
} // namespace

int main(int count, char **words) {
    if (count != 6 && count != 7)
        return 2;
    uint32_t ports = static_cast<uint32_t>(std::stoul(words[2])), lanes = static_cast<uint32_t>(std::stoul(words[3]));
    uint32_t warps = static_cast<uint32_t>(std::stoul(words[4]));
    is_llvms = !std::strcmp(words[5], "llvm");
    void *address = count == 7 ? reinterpret_cast<void *>(std::stoull(words[6], nullptr, 16)) : nullptr;
    new (&client) Client(ports, memory(words[1], Server::allocation_size(lanes, ports), address, words));
    std::vector<std::thread> threads;
    for (uint32_t warp = 0; warp < warps; warp++)
        threads.emplace_back([=] {
            warp::run(lanes, parts(lanes, warp), [=](uint32_t lane) { all(warp * 64 + lane); });
        });
    for (auto &thread : threads)
        thread.join();
    // Only one warp ends the program, by a call that the server answers by exiting.
    warp::run(lanes, {1}, [](uint32_t) { libc::internal::exit(42); });
}
