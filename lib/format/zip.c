/* SPDX-License-Identifier: MIT */
#include "format/zip.h"

#include <stdlib.h>
#include <string.h>

#include <minizip/unzip.h>

#include "format/item.h"
#include "format/quote.h"
#include "format/zip_file.h"
#include "format/zlib_memory.h"

#define ENCRYPTED 1u /* of an entry's flags */
#define STORED 0
#define DEFLATED 8
#define LAST_RECORD_SIZE 22u
#define LOCATOR_SIZE 20u /* of the last record of 64 bits, before it */

/* minizip finds the entries. It could unpack them, too, but loses memory when that fails for want
 * of it, does not take its memory from hooks, and copies byte by byte. */
typedef struct entry_stream {
    eplb_stream stream;
    eplb_zip *zip;
    const eplb_zip_entry *entry;
    uint64_t offset; /* in the file, of the packed bytes that come next */
    uint64_t left;   /* of them */
    bool is_deflated;
    bool at_end; /* of what is deflated */
    uint64_t done;
    uLong crc;
    z_stream decoder;
    char packed[EPLB_ZIP_BLOCK];
} entry_stream;

static eplb_status fail(const eplb_zip *zip, const char *entry, const char *what, eplb_error *error)
{
    const char *name = zip->input->name;
    return entry == NULL
               ? eplb_error_set(error, EPLB_ERROR_PARSE, "%s: zip archive: %s", name, what)
               : eplb_error_set(error, EPLB_ERROR_PARSE, "%s: zip archive: entry '%s': %s", name,
                                eplb_quote_bytes(entry, strlen(entry)).text, what);
}

static eplb_status make_room(eplb_zip *zip, eplb_error *error)
{
    if (zip->count < zip->capacity) {
        return EPLB_OK;
    }
    size_t capacity = zip->capacity > 0 ? 2 * zip->capacity : 8;
    eplb_zip_entry *entries = eplb_realloc(&zip->hooks, zip->entries, capacity, sizeof(*entries));
    if (entries == NULL) {
        return eplb_out_of_memory(error);
    }
    zip->entries = entries;
    zip->capacity = capacity;
    return EPLB_OK;
}

/* Notes minizip's current entry. */
static eplb_status add_entry(eplb_zip *zip, eplb_error *error)
{
    eplb_status status = make_room(zip, error);
    unz_file_info64 info;
    unz64_file_pos place;
    if (status != EPLB_OK) {
        return status;
    }
    if (unzGetCurrentFileInfo64(zip->archive, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK ||
        unzGetFilePos64(zip->archive, &place) != UNZ_OK) {
        return fail(zip, NULL, "a broken directory", error);
    }
    char *name = eplb_alloc_zeroed(&zip->hooks, info.size_filename + 1, 1);
    if (name == NULL) {
        return eplb_out_of_memory(error);
    }
    zip->entries[zip->count++] = (eplb_zip_entry){.name = name,
                                                  .size = info.uncompressed_size,
                                                  .packed = info.compressed_size,
                                                  .crc = (uint32_t)info.crc,
                                                  .is_stored = info.compression_method == STORED &&
                                                               (info.flag & ENCRYPTED) == 0,
                                                  .is_encrypted = (info.flag & ENCRYPTED) != 0,
                                                  .place = place.pos_in_zip_directory,
                                                  .number = place.num_of_file};
    if (unzGetCurrentFileInfo64(zip->archive, &info, name, info.size_filename + 1, NULL, 0, NULL,
                                0) != UNZ_OK ||
        strlen(name) != info.size_filename) {
        return fail(zip, name, "a broken name", error);
    }
    return EPLB_OK;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const eplb_zip_entry *)a)->name, ((const eplb_zip_entry *)b)->name);
}

static eplb_status sort_entries(eplb_zip *zip, eplb_error *error)
{
    qsort(zip->entries, zip->count, sizeof(*zip->entries), compare_entries);
    for (size_t i = 1; i < zip->count; i++) {
        if (strcmp(zip->entries[i - 1].name, zip->entries[i].name) == 0) {
            return fail(zip, zip->entries[i].name, "there twice", error);
        }
    }
    return EPLB_OK;
}

static eplb_status read_directory(eplb_zip *zip, eplb_error *error)
{
    int result = unzGoToFirstFile(zip->archive);
    while (result == UNZ_OK) {
        eplb_status status = add_entry(zip, error);
        if (status != EPLB_OK) {
            return status;
        }
        result = unzGoToNextFile(zip->archive);
    }
    if (result != UNZ_END_OF_LIST_OF_FILE) {
        return fail(zip, NULL, "a broken directory", error);
    }
    return zip->count > 0 ? sort_entries(zip, error) : fail(zip, NULL, "no entries", error);
}

/* Reads a record that must lie inside the file and begin with the magic, else *found is false. */
static eplb_status find_record(const eplb_zip *zip, uint64_t place, const char *magic, char *record,
                               size_t size, bool *found, eplb_error *error)
{
    *found = false;
    if (zip->file->size < size || place > zip->file->size - size) {
        return EPLB_OK;
    }
    eplb_status status = eplb_input_read_at(zip->input, record, size, place, error);
    *found = status == EPLB_OK && memcmp(record, magic, 4) == 0;
    return status;
}

/* The last record, at `place`, says where the directory before it begins, or, with 64 bits, the
 * locator between them where the record before that one does: in an archive that begins where the
 * file does. What lies before it, such as another archive, would be left out without a word. */
static eplb_status check_head(const eplb_zip *zip, const char *record, uint64_t place,
                              eplb_error *error)
{
    uint64_t length = eplb_item_bits(record + 12, 4, false);
    uint64_t begin = eplb_item_bits(record + 16, 4, false);
    if (begin + length == place) {
        return EPLB_OK;
    }
    char locator[LOCATOR_SIZE];
    char other[12];
    uint64_t before = place - LOCATOR_SIZE; /* beyond the file when there is no room for it */
    bool found;
    eplb_status status =
        find_record(zip, before, "PK\x06\x07", locator, sizeof(locator), &found, error);
    if (status == EPLB_OK && found) {
        begin = eplb_item_bits(locator + 8, 8, false);
        status = find_record(zip, begin, "PK\x06\x06", other, sizeof(other), &found, error);
    }
    if (status == EPLB_OK && found) {
        found = begin + sizeof(other) + eplb_item_bits(other + 4, 8, false) == before;
    }
    return status != EPLB_OK || found
               ? status
               : fail(zip, NULL, "it does not begin where the file does", error);
}

/* minizip looks for the last record of an archive from the end: what lies behind it is no comment
 * unless the record says so. */
static eplb_status check_tail(const eplb_zip *zip, eplb_error *error)
{
    unz_global_info64 info;
    char record[LAST_RECORD_SIZE];
    if (unzGetGlobalInfo64(zip->archive, &info) != UNZ_OK ||
        info.size_comment + LAST_RECORD_SIZE > zip->file->size) {
        return fail(zip, NULL, "a broken directory", error);
    }
    uint64_t place = zip->file->size - info.size_comment - LAST_RECORD_SIZE;
    eplb_status status = eplb_input_read_at(zip->input, record, sizeof(record), place, error);
    if (status == EPLB_OK && memcmp(record, "PK\x05\x06", 4) != 0) {
        return fail(zip, NULL, "its directory is not at the end of the file: was it cut?", error);
    }
    return status == EPLB_OK ? check_head(zip, record, place, error) : status;
}

eplb_status eplb_zip_open(eplb_zip *zip, const eplb_hooks *hooks, eplb_input *input,
                          eplb_error *error)
{
    *zip = (eplb_zip){.hooks = *hooks, .input = input};
    uint64_t size;
    if (!eplb_input_size(input, &size)) {
        return eplb_input_refuse_stream(input, "a zip archive", error);
    }
    zip->file = eplb_alloc_zeroed(hooks, 1, sizeof(*zip->file));
    if (zip->file == NULL) {
        return eplb_out_of_memory(error);
    }
    zip->file->input = input;
    zip->file->size = size;
    zlib_filefunc64_def callbacks = eplb_zip_callbacks(zip->file);
    zip->archive = unzOpen2_64("", &callbacks);
    eplb_status status = zip->archive != NULL
                             ? read_directory(zip, error)
                             : fail(zip, NULL, "no directory at its end: was it cut?", error);
    if (status == EPLB_OK) {
        status = check_tail(zip, error);
    }
    if (status != EPLB_OK) {
        eplb_zip_close(zip);
    }
    return status;
}

void eplb_zip_close(eplb_zip *zip)
{
    if (zip->archive != NULL) {
        (void)unzClose(zip->archive);
    }
    for (size_t i = 0; i < zip->count; i++) {
        eplb_free(&zip->hooks, zip->entries[i].name);
    }
    eplb_free(&zip->hooks, zip->entries);
    eplb_free(&zip->hooks, zip->file);
    zip->archive = NULL;
    zip->entries = NULL;
    zip->count = 0;
    zip->file = NULL;
}

const eplb_zip_entry *eplb_zip_find(const eplb_zip *zip, const char *name)
{
    size_t low = 0;
    size_t high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(zip->entries[middle].name, name);
        if (order == 0) {
            return &zip->entries[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Finds where the packed bytes of an entry begin in the file, and how they are packed. */
static eplb_status find_bytes(eplb_zip *zip, const eplb_zip_entry *entry, int *method,
                              uint64_t *offset, eplb_error *error)
{
    unz64_file_pos place = {.pos_in_zip_directory = entry->place, .num_of_file = entry->number};
    if (entry->is_encrypted) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: zip archive: entry '%s' is encrypted", zip->input->name,
                              eplb_quote_bytes(entry->name, strlen(entry->name)).text);
    }
    if (unzGoToFilePos64(zip->archive, &place) != UNZ_OK) {
        return fail(zip, entry->name, "cannot be found", error);
    }
    int result = unzOpenCurrentFile2(zip->archive, method, NULL, 1);
    if (result == UNZ_INTERNALERROR) {
        return eplb_out_of_memory(error);
    }
    if (result != UNZ_OK) {
        return fail(zip, entry->name,
                    "is not what the directory says, or compressed in a way that "
                    "is not supported",
                    error);
    }
    *offset = unzGetCurrentFileZStreamPos64(zip->archive);
    (void)unzCloseCurrentFile(zip->archive);
    return *offset <= zip->file->size && entry->packed <= zip->file->size - *offset
               ? EPLB_OK
               : fail(zip, entry->name, "longer than the file", error);
}

eplb_status eplb_zip_locate(eplb_zip *zip, const eplb_zip_entry *entry, uint64_t *offset,
                            eplb_error *error)
{
    if (!entry->is_stored || entry->size != entry->packed) {
        return fail(zip, entry->name, "compressed, but such files have their data as they are",
                    error);
    }
    int method;
    return find_bytes(zip, entry, &method, offset, error);
}

/* Reads bytes as they lie in the archive; none at their end. */
static eplb_status read_packed(entry_stream *self, char *data, size_t size, size_t *got,
                               eplb_error *error)
{
    size_t wanted = self->left < size ? (size_t)self->left : size;
    eplb_status status = eplb_input_read_at(self->zip->input, data, wanted, self->offset, error);
    *got = status == EPLB_OK ? wanted : 0;
    self->offset += *got;
    self->left -= *got;
    self->stream.packed += *got;
    return status;
}

/* Inflates what is at hand. */
static eplb_status inflate_some(entry_stream *self, char *data, size_t size, size_t *got,
                                eplb_error *error)
{
    z_stream *decoder = &self->decoder;
    if (decoder->avail_in == 0) {
        size_t packed;
        eplb_status status = read_packed(self, self->packed, sizeof(self->packed), &packed, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (packed == 0) {
            return fail(self->zip, self->entry->name, "ends too early", error);
        }
        decoder->next_in = (Bytef *)self->packed;
        decoder->avail_in = (uInt)packed;
    }
    uInt room = size < 1u << 30 ? (uInt)size : 1u << 30;
    decoder->next_out = (Bytef *)data;
    decoder->avail_out = room;
    int result = inflate(decoder, Z_NO_FLUSH);
    *got = room - decoder->avail_out;
    self->at_end = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) {
        return eplb_out_of_memory(error);
    }
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR
               ? EPLB_OK
               : fail(self->zip, self->entry->name, "its bytes are wrong", error);
}

/* At the end all that the directory says must have come, and its checksum fit. */
static eplb_status check_end(const entry_stream *self, eplb_error *error)
{
    if (self->done != self->entry->size) {
        return fail(self->zip, self->entry->name, "not as long as the directory says", error);
    }
    return self->crc == self->entry->crc
               ? EPLB_OK
               : fail(self->zip, self->entry->name, "its checksum is wrong", error);
}

static eplb_status read_entry(eplb_stream *stream, char *data, size_t size, size_t *got,
                              eplb_error *error)
{
    entry_stream *self = (entry_stream *)stream;
    eplb_status status = EPLB_OK;
    *got = 0;
    if (!self->is_deflated) {
        status = read_packed(self, data, size, got, error);
    }
    while (status == EPLB_OK && self->is_deflated && *got == 0 && !self->at_end) {
        status = inflate_some(self, data, size, got, error);
    }
    self->done += *got;
    self->crc = crc32_z(self->crc, (const Bytef *)data, *got);
    return status == EPLB_OK && *got == 0 ? check_end(self, error) : status;
}

static void close_entry(eplb_stream *stream)
{
    entry_stream *self = (entry_stream *)stream;
    (void)inflateEnd(&self->decoder);
    eplb_free(&self->zip->hooks, self);
}

static eplb_status begin_inflating(entry_stream *self, eplb_error *error)
{
    self->is_deflated = true;
    self->decoder.zalloc = eplb_zlib_allocate;
    self->decoder.zfree = eplb_zlib_release;
    self->decoder.opaque = &self->zip->hooks;
    return inflateInit2(&self->decoder, -MAX_WBITS) == Z_OK ? EPLB_OK : eplb_out_of_memory(error);
}

eplb_status eplb_zip_read(eplb_zip *zip, const eplb_zip_entry *entry, eplb_stream **stream,
                          eplb_error *error)
{
    int method = STORED;
    uint64_t offset = 0;
    eplb_status status = find_bytes(zip, entry, &method, &offset, error);
    if (status != EPLB_OK) {
        return status;
    }
    entry_stream *self = eplb_alloc(&zip->hooks, 1, sizeof(*self));
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    memset(self, 0, offsetof(entry_stream, packed));
    self->stream = (eplb_stream){.read = read_entry, .close = close_entry};
    self->zip = zip;
    self->entry = entry;
    self->offset = offset;
    self->left = entry->packed;
    if (method == DEFLATED) {
        status = begin_inflating(self, error);
    } else if (method != STORED) {
        status = fail(zip, entry->name, "compressed in a way that is not supported", error);
    }
    if (status != EPLB_OK) {
        close_entry(&self->stream);
        return status;
    }
    *stream = &self->stream;
    return EPLB_OK;
}
