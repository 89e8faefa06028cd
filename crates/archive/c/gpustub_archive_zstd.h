/* Decompresses contents of super-archives by libzstd 1.4 or later. FORMAT.md specifies each byte. C99, and C++11 and later;
 * needs <zstd.h>, and -lzstd. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef GPUSTUB_ARCHIVE_ZSTD_H
#define GPUSTUB_ARCHIVE_ZSTD_H

#include <zstd.h>

#include "gpustub_archive.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A gpustub_archive_decompressor. `context` is a ZSTD_DCtx, which several calls may share one after the other, or NULL.
 * Memory that libzstd allocates does not depend on the contents: the result is written to `out` directly. */
static inline int gpustub_archive_zstd(void *context, unsigned codec, const void *in, size_t in_size, const void *base,
                                       size_t base_size, void *out, size_t out_size) {
    ZSTD_DCtx *zstd = context ? (ZSTD_DCtx *)context : ZSTD_createDCtx();
    int status = -1;
    if (zstd && codec == GPUSTUB_ARCHIVE_ZSTD && !ZSTD_isError(ZSTD_DCtx_reset(zstd, ZSTD_reset_session_and_parameters)) &&
        !ZSTD_isError(ZSTD_DCtx_refPrefix(zstd, base, base ? base_size : 0)))
        status = ZSTD_decompressDCtx(zstd, out, out_size, in, in_size) == out_size ? 0 : -1;
    if (zstd != context)
        ZSTD_freeDCtx(zstd);
    return status;
}

#ifdef __cplusplus
}
#endif

#endif
