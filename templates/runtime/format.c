/* format.c: growing strings; a failed allocation leaves them unchanged. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void append_bytes(struct text *text, const char *bytes, size_t length)
{
    if (text->capacity - text->length <= length) {
        size_t capacity = text->capacity < 128 ? 256 : text->capacity * 2;
        while (capacity - text->length <= length)
            capacity *= 2;
        char *data = realloc(text->data, capacity);
        if (!data)
            return;
        text->data = data;
        text->capacity = capacity;
    }
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void append(struct text *text, const char *string)
{
    append_bytes(text, string, strlen(string));
}

void append_number(struct text *text, long number)
{
    char digits[24];
    char *p = digits + sizeof digits;
    unsigned long rest = number < 0 ? 0UL - (unsigned long)number : (unsigned long)number;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--p = '-';
    append_bytes(text, p, (size_t)(digits + sizeof digits - p));
}

void append_version(struct text *text, int32_t version)
{
    append_number(text, version / 1000);
    append(text, ".");
    append_number(text, version % 1000 / 10);
}

/* Returns the length of the UTF-8 sequence at `bytes` (RFC 3629, section 4); 0 if it is malformed. */
static size_t utf8_length(const unsigned char *bytes)
{
    unsigned char first = bytes[0];
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (first > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf)
        if (bytes[i] < low || bytes[i] > high)
            return 0;
    return length;
}

/* Returns the length of the control character at `bytes` (C0, DEL, C1 in UTF-8), or 0. */
static size_t control_length(const unsigned char *bytes)
{
    if (bytes[0] < 0x20 || bytes[0] == 0x7f)
        return 1;
    return bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] < 0xa0 ? 2 : 0;
}

static void append_hex_byte(struct text *text, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    char digits[2] = {hex[byte >> 4], hex[byte & 15]};
    append_bytes(text, digits, 2);
}

/* Appends text for a terminal: control characters and malformed UTF-8, which paths may have, as `\x1b`. */
void append_printable(struct text *text, const char *string)
{
    for (size_t length; *string; string += length) {
        const unsigned char *bytes = (const unsigned char *)string;
        size_t control = control_length(bytes), valid = utf8_length(bytes);
        length = control ? control : valid ? valid : 1;
        if (!control && valid) {
            append_bytes(text, string, length);
            continue;
        }
        for (size_t i = 0; i < length; i++) {
            append(text, "\\x");
            append_hex_byte(text, bytes[i]);
        }
    }
}

/* Appends a JSON string (RFC 8259, section 7), with all control characters escaped. File names are bytes:
 * malformed UTF-8 becomes U+FFFD. */
void append_json(struct text *text, const char *string)
{
    append(text, "\"");
    for (size_t length; *string; string += length ? length : 1) {
        unsigned char c = (unsigned char)*string;
        length = utf8_length((const unsigned char *)string);
        if (c == '"' || c == '\\') {
            char escaped[2] = {'\\', (char)c};
            append_bytes(text, escaped, 2);
        } else if (control_length((const unsigned char *)string)) {
            append(text, "\\u00");
            append_hex_byte(text, (unsigned char)string[length - 1]); /* U+0080 to U+009F, too */
        } else if (!length) {
            append(text, "\\ufffd");
        } else {
            append_bytes(text, string, length);
        }
    }
    append(text, "\"");
}

char *copy_string(const char *string)
{
    return join(string, "", "");
}

char *join(const char *a, const char *b, const char *c)
{
    size_t la = strlen(a), lb = strlen(b), lc = strlen(c);
    char *joined = malloc(la + lb + lc + 1);
    if (!joined)
        return NULL;
    memcpy(joined, a, la);
    memcpy(joined + la, b, lb);
    memcpy(joined + la + lb, c, lc + 1);
    return joined;
}
