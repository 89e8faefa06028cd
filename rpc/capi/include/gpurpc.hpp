// gpurpc.hpp - typed calls from a GPU to the host: both ends are made from one signature. C++17, CUDA and HIP.
//
//     using Scale = int(float, int);                          // in a header of both ends
//     constexpr uint32_t SCALE = GPURPC_OPCODE('x', 3);
//
//     int n = gpurpc::call<Scale>(client, SCALE, 1.5f, 2);    // device
//
//     int scale(float by, int what);                          // host
//     gpurpc::register_typed<Scale>(server, SCALE, scale);
//
// Arguments, 64 bytes together, and the result are copied as bytes, so their types are trivially copyable, and have the same
// layout on both ends. In the packet of a lane arguments follow each other, each at a multiple of its alignment; the answer has
// the result at its start.
//
// The device is not trusted: the host receives any bytes as arguments, and pointers point anywhere. A bool is true or
// false; members of structs and enumerators are what the device has sent.
//
// This header needs no other of C++ but gpurpc.h and gpurpc_client.h. Names of gpurpc::detail are not part of the interface.
#ifndef GPURPC_HPP
#define GPURPC_HPP

#include "gpurpc.h"
#include "gpurpc_client.h"

#if defined(__CUDACC__) || defined(__CUDA__) || defined(__HIPCC__) || defined(__HIP__)
#define GPURPC_DETAIL_MEMBER static __device__ inline
#define GPURPC_DETAIL_BOTH __host__ __device__
#else
#define GPURPC_DETAIL_MEMBER static inline
#define GPURPC_DETAIL_BOTH
#endif
#if defined(__NVCC__) && defined(__CUDACC__)
#define GPURPC_DETAIL_COPY memcpy
#else
#define GPURPC_DETAIL_COPY __builtin_memcpy
#endif

namespace gpurpc {
namespace detail {

template <class T> struct is_bytes { static constexpr bool value = __is_trivially_copyable(T); };
template <class T> struct is_bytes<T &> { static constexpr bool value = false; };
template <class T> struct is_bytes<T &&> { static constexpr bool value = false; };
// 16 bytes on some hosts, 8 on devices.
template <> struct is_bytes<long double> { static constexpr bool value = false; };
template <> struct is_bytes<void> { static constexpr bool value = true; };

template <class T> struct size_of { static constexpr unsigned value = sizeof(T); };
template <class T> struct size_of<T &> { static constexpr unsigned value = 0; };
template <class T> struct size_of<T &&> { static constexpr unsigned value = 0; };
template <> struct size_of<void> { static constexpr unsigned value = 0; };

// Storage of an object whose bytes are copied into it.
template <class T> union storage {
    T value;
    unsigned char byte;
    GPURPC_DETAIL_BOTH storage() : byte(0) {}
};

// Copies whole words, as a packet is memory that host and device access at the same time.
template <unsigned Size> struct words {
    GPURPC_DETAIL_BOTH static void copy(gpurpc_buffer_t *to, const gpurpc_buffer_t *from) {
        for (unsigned i = 0; i < (Size + 7) / 8; i++)
            to->data[i] = from->data[i];
    }
};
// nvcc warns about a loop that never runs.
template <> struct words<0> {
    GPURPC_DETAIL_BOTH static void copy(gpurpc_buffer_t *, const gpurpc_buffer_t *) {}
};

// A value in a private copy of a packet.
template <class T> struct packed {
    GPURPC_DETAIL_BOTH static void write(gpurpc_buffer_t *packet, unsigned offset, const T &value) {
        GPURPC_DETAIL_COPY(reinterpret_cast<unsigned char *>(packet) + offset, &value, sizeof(T));
    }
    GPURPC_DETAIL_BOTH static T read(const gpurpc_buffer_t *packet, unsigned offset) {
        storage<T> result;
        GPURPC_DETAIL_COPY(&result.byte, reinterpret_cast<const unsigned char *>(packet) + offset, sizeof(T));
        return result.value;
    }
};

// A bool of another value than 0 and 1 is undefined behaviour.
template <> struct packed<bool> {
    GPURPC_DETAIL_BOTH static void write(gpurpc_buffer_t *packet, unsigned offset, bool value) {
        reinterpret_cast<unsigned char *>(packet)[offset] = value ? 1 : 0;
    }
    GPURPC_DETAIL_BOTH static bool read(const gpurpc_buffer_t *packet, unsigned offset) {
        return reinterpret_cast<const unsigned char *>(packet)[offset] != 0;
    }
};

// Positions of arguments in a packet.
template <unsigned Start, class... Types> struct layout {
    static constexpr unsigned end = Start;
    GPURPC_DETAIL_MEMBER void write(gpurpc_buffer_t *) {}
    // Calls a function of the host with the arguments of a packet.
    template <class Callable, class... Done>
    static auto apply(Callable &callable, const gpurpc_buffer_t *, const Done &...arguments) {
        return callable(arguments...);
    }
};
template <unsigned Start, class First, class... Rest> struct layout<Start, First, Rest...> {
    static constexpr unsigned offset = (Start + alignof(First) - 1) / alignof(First) * alignof(First);
    using rest = layout<offset + sizeof(First), Rest...>;
    static constexpr unsigned end = rest::end;
    GPURPC_DETAIL_MEMBER void write(gpurpc_buffer_t *packet, const First &first, const Rest &...others) {
        packed<First>::write(packet, offset, first);
        rest::write(packet, others...);
    }
    template <class Callable, class... Done>
    static auto apply(Callable &callable, const gpurpc_buffer_t *packet, const Done &...done) {
        return rest::apply(callable, packet, done..., packed<First>::read(packet, offset));
    }
};

// The result in the packet of the answer, or nothing.
template <class Result> struct answer {
    GPURPC_DETAIL_MEMBER Result receive(gpurpc_call_t *call) {
        gpurpc_buffer_t packet;
        words<sizeof(Result)>::copy(&packet, gpurpc_call_recv(call));
        return packed<Result>::read(&packet, 0);
    }
    template <class Layout, class Callable>
    static void make(Callable &callable, const gpurpc_buffer_t *input, gpurpc_buffer_t *output) {
        const Result result = Layout::apply(callable, input);
        gpurpc_buffer_t packet = {};
        packed<Result>::write(&packet, 0, result);
        words<sizeof(Result)>::copy(output, &packet);
    }
};
template <> struct answer<void> {
    GPURPC_DETAIL_MEMBER void receive(gpurpc_call_t *call) { gpurpc_call_recv(call); }
    template <class Layout, class Callable>
    static void make(Callable &callable, const gpurpc_buffer_t *input, gpurpc_buffer_t *) {
        Layout::apply(callable, input);
    }
};

template <class Signature> struct typed {
    static_assert(sizeof(Signature) == 0, "gpurpc: a signature is a function type, such as int(float, int)");
};
template <class Result, class... Arguments> struct typed<Result(Arguments...)> {
    static_assert((is_bytes<Arguments>::value && ...),
                  "gpurpc: arguments are copied as bytes: trivially copyable values, no references, no long double");
    static_assert(is_bytes<Result>::value,
                  "gpurpc: the result is copied as bytes: a trivially copyable value, no reference, no long double");
    static_assert(size_of<Result>::value <= sizeof(gpurpc_buffer_t), "gpurpc: the result has at most 64 bytes");
    using result = Result;
    using arguments = layout<0, Arguments...>;
    static_assert(arguments::end <= sizeof(gpurpc_buffer_t), "gpurpc: the arguments have at most 64 bytes");
    static constexpr unsigned count = sizeof...(Arguments);
    // A packet of a warp's callback has at least one.
    static constexpr uint32_t word_count = arguments::end == 0 ? 1 : (arguments::end + 7) / 8;

    GPURPC_DETAIL_MEMBER void fill(gpurpc_call_t *call, const Arguments &...values) {
        gpurpc_buffer_t packet = {};
        arguments::write(&packet, values...);
        words<arguments::end>::copy(gpurpc_call_fill(call), &packet);
    }
    GPURPC_DETAIL_MEMBER Result call(gpurpc_call_t call, Arguments... values) {
        fill(&call, values...);
        gpurpc_call_send(&call);
        if constexpr (size_of<Result>::value == 0) {
            answer<Result>::receive(&call);
            gpurpc_call_close(&call);
        } else {
            const Result result = answer<Result>::receive(&call);
            gpurpc_call_close(&call);
            return result;
        }
    }
    GPURPC_DETAIL_MEMBER void post(gpurpc_call_t call, Arguments... values) {
        fill(&call, values...);
        gpurpc_call_post(&call);
    }
    // A gpurpc_warp_callback_ty. An exception ends the process, as it cannot cross C.
    template <class Callable>
    static void serve(const gpurpc_buffer_t *input, gpurpc_buffer_t *output, uint64_t mask, uint32_t lanes,
                      void *data) noexcept {
        Callable &callable = *reinterpret_cast<Callable *>(data);
        for (uint32_t lane = 0; lane < lanes; lane++) {
            if ((mask >> lane & 1) == 0)
                continue;
            gpurpc_buffer_t packet = {};
            words<arguments::end>::copy(&packet, &input[lane]);
            answer<Result>::template make<arguments>(callable, &packet, &output[lane]);
        }
    }
};
template <class Result, class... Arguments>
struct typed<Result(Arguments...) noexcept> : typed<Result(Arguments...)> {};

template <class Signature, class... Given> struct matching : typed<Signature> {
    static_assert(sizeof...(Given) == typed<Signature>::count, "gpurpc: the signature has another number of arguments");
};

} // namespace detail

// Calls the host and waits for the result: one call of all active lanes, each with its own arguments and result.
template <class Signature, class... Arguments>
GPURPC_DETAIL_FN auto call(gpurpc_client_t *client, uint32_t opcode, Arguments... arguments) {
    return detail::matching<Signature, Arguments...>::call(gpurpc_client_open(client, opcode), arguments...);
}

// Calls the host without waiting: see gpurpc_call_post. A result is ignored.
template <class Signature, class... Arguments>
GPURPC_DETAIL_FN void post(gpurpc_client_t *client, uint32_t opcode, Arguments... arguments) {
    detail::matching<Signature, Arguments...>::post(gpurpc_client_open(client, opcode), arguments...);
}

// As call, of this lane alone: see gpurpc_client_open_lane.
template <class Signature, class... Arguments>
GPURPC_DETAIL_FN auto call_lane(gpurpc_client_t *client, uint32_t opcode, Arguments... arguments) {
    return detail::matching<Signature, Arguments...>::call(gpurpc_client_open_lane(client, opcode), arguments...);
}

// As post, of this lane alone.
template <class Signature, class... Arguments>
GPURPC_DETAIL_FN void post_lane(gpurpc_client_t *client, uint32_t opcode, Arguments... arguments) {
    detail::matching<Signature, Arguments...>::post(gpurpc_client_open_lane(client, opcode), arguments...);
}

// Registers a function of the host, a lambda or another object with a call operator, which answers each lane. The object stays
// where it is until the server is destroyed. It follows the rules for callbacks: it does not block, and throws nothing.
// Statuses are those of gpurpc_register_warp.
template <class Signature, class Callable>
gpurpc_status_t register_typed(gpurpc_server_t *server, uint32_t opcode, Callable &callable) {
    using typed = detail::typed<Signature>;
    void *data = const_cast<void *>(reinterpret_cast<const volatile void *>(&callable));
    return gpurpc_register_warp(server, opcode, typed::word_count, &typed::template serve<Callable>, data);
}

// A temporary object does not outlive the call.
template <class Signature, class Callable>
gpurpc_status_t register_typed(gpurpc_server_t *server, uint32_t opcode, const Callable &&callable) = delete;

} // namespace gpurpc

#undef GPURPC_DETAIL_MEMBER
#undef GPURPC_DETAIL_BOTH
#undef GPURPC_DETAIL_COPY

#endif
