/* SPDX-License-Identifier: MIT */
#include "formats.h"

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_ZIP
#include <zip.h>
#endif

#if defined(HAVE_ZLIB) || defined(HAVE_ZSTD) || defined(HAVE_ZIP)
enum { BLOCK = 1 << 20 };

/* Takes the bytes of a file block by block; `last` with those behind which there are none. */
typedef void take_block(void *context, const void *bytes, size_t size, int last);

static void each_block(const bench_path *path, take_block *take, void *context)
{
    FILE *in = fopen(path->text, "rb");
    bench_require(in != NULL, "cannot open a file");
    char *block = bench_alloc(BLOCK, 1);
    size_t got;
    do {
        got = fread(block, 1, BLOCK, in);
        take(context, block, got, got < BLOCK);
    } while (got == BLOCK);
    free(block);
    (void)fclose(in);
}
#endif

#ifdef HAVE_ZLIB
static void take_gzip(void *context, const void *bytes, size_t size, int last)
{
    (void)last;
    bench_require(gzwrite(context, bytes, (unsigned)size) == (int)size, "cannot write gzip");
}

void formats_pack_gzip(const bench_path *plain, const bench_path *packed)
{
    gzFile out = gzopen(packed->text, "wb");
    bench_require(out != NULL, "cannot make a file");
    each_block(plain, take_gzip, out);
    bench_require(gzclose(out) == Z_OK, "cannot write gzip");
}
#endif

#ifdef HAVE_ZSTD
typedef struct zstd_file {
    ZSTD_CCtx *packer;
    FILE *out;
    char *block; /* [BLOCK] */
} zstd_file;

static void take_zstd(void *context, const void *bytes, size_t size, int last)
{
    zstd_file *self = context;
    ZSTD_inBuffer in = {.src = bytes, .size = size};
    size_t left;
    do {
        ZSTD_outBuffer out = {.dst = self->block, .size = BLOCK};
        left = ZSTD_compressStream2(self->packer, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        bench_require(!ZSTD_isError(left), "cannot pack with zstd");
        fwrite(self->block, 1, out.pos, self->out);
    } while (last ? left > 0 : in.pos < in.size);
}

void formats_pack_zstd(const bench_path *plain, const bench_path *packed)
{
    zstd_file self = {.packer = ZSTD_createCCtx(), .out = fopen(packed->text, "wb")};
    self.block = bench_alloc(BLOCK, 1);
    bench_require(self.packer != NULL && self.out != NULL, "cannot make a file");
    each_block(plain, take_zstd, &self);
    bench_require(fclose(self.out) == 0, "cannot write zstd");
    (void)ZSTD_freeCCtx(self.packer);
    free(self.block);
}
#endif

#ifdef HAVE_ZIP
static void take_entry(void *context, const void *bytes, size_t size, int last)
{
    (void)last;
    bench_require(zipWriteInFileInZip(context, bytes, (unsigned)size) == ZIP_OK,
                  "cannot write an archive");
}

/* As numpy.savez does: stored. */
void formats_pack_npz(const bench_path *plain, const bench_path *packed)
{
    zipFile out = zipOpen64(packed->text, APPEND_STATUS_CREATE);
    bench_require(out != NULL, "cannot make an archive");
    zip_fileinfo info = {0};
    bench_require(
        zipOpenNewFileInZip64(out, "counts.npy", &info, NULL, 0, NULL, 0, NULL, 0, 0, 1) == ZIP_OK,
        "cannot make an entry");
    each_block(plain, take_entry, out);
    bench_require(zipCloseFileInZip(out) == ZIP_OK && zipClose(out, NULL) == ZIP_OK,
                  "cannot close an archive");
}
#endif
