/* Prints the properties of device 0, as the headers have them that it is compiled with:
 *
 *   code CODE            of cudaGetDeviceProperties
 *   last CODE            of cudaGetLastError after it
 *   null CODE            of cudaGetDeviceProperties with a null pointer
 *   written              whether a byte of the struct was written
 *   field NAME VALUE     of the struct; integers as numbers, others in hexadecimal
 *   attribute NAME VALUE of cudaDeviceGetAttribute, or its CODE
 *
 * Exits with 1 if fields.inc lacks a field or memory after the struct was written. */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { UNTOUCHED = 0xa5, BEHIND = 4096 };

static struct {
    struct cudaDeviceProp properties;
    unsigned char behind[BEHIND];
} memory;

static void print(const char *name, const void *field, size_t size)
{
    const unsigned char *bytes = field;
    int value;
    printf("field %s ", name);
    if (size == sizeof value) {
        memcpy(&value, field, sizeof value);
        printf("%d", value);
    } else {
        for (size_t i = 0; i < size; i++)
            printf("%02x", bytes[i]);
    }
    printf("\n");
}

static void print_attribute(const char *name, enum cudaDeviceAttr attribute)
{
    int value = -7;
    cudaError_t code = cudaDeviceGetAttribute(&value, attribute, 0);
    printf(code ? "attribute %s code %d\n" : "attribute %s %d\n", name, code ? (int)code : value);
}

/* Every byte belongs to a field, or aligns the next one. */
static int is_complete(void)
{
    size_t end = 0;
#define FIELD(name)                                                                                \
    if (offsetof(struct cudaDeviceProp, name) - end >= sizeof(size_t)) {                           \
        printf("no field before %s\n", #name);                                                     \
        return 0;                                                                                  \
    }                                                                                              \
    end = offsetof(struct cudaDeviceProp, name) + sizeof memory.properties.name;
#define ATTRIBUTE_FIELD(name, attribute) FIELD(name)
#define RESERVED(name) FIELD(name)
#include "fields.inc"
#undef FIELD
#undef RESERVED
    return sizeof memory.properties - end < sizeof(size_t);
}

int main(void)
{
    int written = 0;
    if (!is_complete())
        return 1;
    memset(&memory, UNTOUCHED, sizeof memory);
    cudaError_t code = cudaGetDeviceProperties(&memory.properties, 0);
    printf("code %d\n", code);
    printf("last %d\n", cudaGetLastError());
    printf("null %d\n", cudaGetDeviceProperties(NULL, 0));
    cudaGetLastError();
    for (size_t i = 0; i < sizeof memory.properties; i++)
        written |= ((unsigned char *)&memory.properties)[i] != UNTOUCHED;
    printf("written %d\n", written);
    for (size_t i = 0; i < BEHIND; i++)
        if (memory.behind[i] != UNTOUCHED)
            return 1;
#define FIELD(name) print(#name, &memory.properties.name, sizeof memory.properties.name);
#define RESERVED(name)
    if (!code) {
#include "fields.inc"
    }
    print_attribute("clockRate", cudaDevAttrClockRate);
    print_attribute("memoryClockRate", cudaDevAttrMemoryClockRate);
    return 0;
}
