/* A program that carries a super-archive: links its default view, and reads the other ones. */
#include <gpustub_archive_verify.h>
#include <stdio.h>

__asm__(".section .rdata,\"dr\"\n.balign 16\n.globl archive\narchive:\n.incbin \"lib.a\"\n"
        ".globl archive_end\narchive_end:\n.text\n");
extern const unsigned char archive[], archive_end[];

int answer(void);

int main(void)
{
    struct gpustub_archive opened;
    struct gpustub_archive_view view;
    struct gpustub_archive_member member;
    const void *data;
    size_t size;

    if (gpustub_archive_open(&opened, archive, (size_t)(archive_end - archive)) != GPUSTUB_ARCHIVE_OK ||
        gpustub_archive_verify(&opened) != GPUSTUB_ARCHIVE_OK ||
        gpustub_archive_find_view(&opened, "hidden", 6, &view) != GPUSTUB_ARCHIVE_OK ||
        gpustub_archive_find_symbol(&view, "answer", 6, &member) != GPUSTUB_ARCHIVE_OK ||
        gpustub_archive_data(&member.contents, &data, &size) != GPUSTUB_ARCHIVE_OK)
        return 1;
    printf("%d, %.*s\n", answer(), (int)member.name_length, member.name);
    return 0;
}
