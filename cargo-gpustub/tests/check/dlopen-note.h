/* Note as systemd's macro writes it (UAPI.12). */
#define NOTE(name, json)                                                                           \
    __attribute__((used, section(".note.dlopen"), aligned(4))) static const struct {               \
        unsigned name_size, size, type;                                                            \
        char owner[4], text[(sizeof(json) + 3) / 4 * 4];                                           \
    } name = {4, sizeof(json), 0x407c0c0a, "FDO", json};
