/* SPDX-License-Identifier: MIT */
/* Files as torch.save writes them, made from a pickle in words. */
#ifndef EPLB_TESTS_FORMAT_PT_FILE_H
#define EPLB_TESTS_FORMAT_PT_FILE_H

#include "reading.h"

enum { PT_LARGEST = 1 << 22, PT_ENTRIES = 8, ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* A zip archive in the making. */
typedef struct pt_file {
    unsigned char *bytes; /* [PT_LARGEST] */
    size_t size;
    unsigned char directory[1024];
    size_t directory_size;
    unsigned entries;
} pt_file;

static inline void pt_start(pt_file *file)
{
    *file = (pt_file){.bytes = malloc(PT_LARGEST)};
    assert_non_null(file->bytes);
}

static inline void pt_put(unsigned char *bytes, size_t *size, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        bytes[(*size)++] = (unsigned char)(value >> 8 * i);
    }
}

static inline uint32_t pt_crc32(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
    }
    return ~crc;
}

/* The fields that an entry's own header and its line of the directory share. */
static inline void pt_put_fields(unsigned char *bytes, size_t *size, const char *name,
                                 const void *data, size_t length, unsigned method)
{
    pt_put(bytes, size, 10, 2); /* version */
    pt_put(bytes, size, 0, 2);
    pt_put(bytes, size, method, 2);
    pt_put(bytes, size, 0, 4);
    pt_put(bytes, size, pt_crc32(data, length), 4);
    pt_put(bytes, size, length, 4);
    pt_put(bytes, size, length, 4);
    pt_put(bytes, size, strlen(name), 2);
    pt_put(bytes, size, 0, 2);
}

/* The method is what the archive says; the data lie as they are. */
static inline void pt_add(pt_file *file, const char *name, const void *data, size_t length,
                          unsigned method)
{
    size_t offset = file->size;
    assert_true(length < PT_LARGEST / 2 && file->entries < PT_ENTRIES);
    pt_put(file->bytes, &file->size, 0x04034b50, 4);
    pt_put_fields(file->bytes, &file->size, name, data, length, method);
    memcpy(file->bytes + file->size, name, strlen(name));
    file->size += strlen(name);
    memcpy(file->bytes + file->size, data, length);
    file->size += length;

    pt_put(file->directory, &file->directory_size, 0x02014b50, 4);
    pt_put(file->directory, &file->directory_size, 10, 2);
    pt_put_fields(file->directory, &file->directory_size, name, data, length, method);
    pt_put(file->directory, &file->directory_size, 0, 6);
    pt_put(file->directory, &file->directory_size, 0, 4);
    pt_put(file->directory, &file->directory_size, offset, 4);
    memcpy(file->directory + file->directory_size, name, strlen(name));
    file->directory_size += strlen(name);
    file->entries++;
}

/* Writes the archive as it is and with its directory. */
static inline void pt_finish(pt_file *file, const char *path)
{
    size_t offset = file->size;
    memcpy(file->bytes + file->size, file->directory, file->directory_size);
    file->size += file->directory_size;
    pt_put(file->bytes, &file->size, 0x06054b50, 4);
    pt_put(file->bytes, &file->size, 0, 4);
    pt_put(file->bytes, &file->size, file->entries, 2);
    pt_put(file->bytes, &file->size, file->entries, 2);
    pt_put(file->bytes, &file->size, file->directory_size, 4);
    pt_put(file->bytes, &file->size, offset, 4);
    pt_put(file->bytes, &file->size, 0, 2);
    test_write_file(path, file->bytes, file->size);
    free(file->bytes);
}

/*
 * Writes a pickle from words: 'text' is BINUNICODE, #1 is BININT, #L1 is LONG1 of 8 bytes,
 * @module name; is GLOBAL, $hh a byte; any other character is the opcode that it is. Returns the
 * size.
 */
static inline size_t pt_pickle(const char *words, unsigned char *bytes)
{
    size_t size = 0;
    while (*words != '\0') {
        char word = *words++;
        char *end = NULL;
        if (word == '\'') {
            size_t length = strcspn(words, "'");
            bytes[size++] = 'X';
            pt_put(bytes, &size, length, 4);
            memcpy(bytes + size, words, length);
            size += length;
            words += length + 1;
        } else if (word == '#') {
            bool is_long = *words == 'L';
            bytes[size++] = is_long ? 0x8a : 'J';
            if (is_long) {
                bytes[size++] = 8;
            }
            pt_put(bytes, &size, (uint64_t)strtoll(words + is_long, &end, 10), is_long ? 8 : 4);
            words = end;
        } else if (word == '@') {
            bytes[size++] = 'c';
            for (; *words != ';'; words++) {
                bytes[size++] = (unsigned char)(*words == ' ' ? '\n' : *words);
            }
            bytes[size++] = '\n';
            words++;
        } else if (word == '$') {
            const char digits[] = {words[0], words[1], '\0'};
            bytes[size++] = (unsigned char)strtoul(digits, NULL, 16);
            words += 2;
        } else {
            bytes[size++] = (unsigned char)word;
        }
    }
    return size;
}

/* Words of pickles. The archive has storage '0', of the counts 1 to 8 as 32-bit integers, and '1',
 * of the map below as 64-bit ones. */
#define STORAGE(type, key, items) "('storage'@torch " type ";'" key "''cpu'" items "tQ"
#define VIEW(storage, place)                                                                       \
    "@torch._utils _rebuild_tensor_v2;(" storage place "$89@collections OrderedDict;)RtR"
#define COUNTS(place) VIEW(STORAGE("IntStorage", "0", "#8"), place)
#define MAP(place) VIEW(STORAGE("LongStorage", "1", "#8"), place)
#define WHOLE "#0#2#4$86#4#1$86" /* offset, [2, 4], strides */
#define STAT(tensor) "$80$02}('logical_count'" tensor "u."
#define RECORD(pass, rank, tensor)                                                                 \
    "}('forward_pass_id'" pass "'rank'" rank                                                       \
    "'gatherer_key''primary''global_physical_count'" tensor "u"
#define PASSES(records, map)                                                                       \
    "$80$02}('records'](" records "e'last_physical_to_logical_map'" map "u."

static const int64_t pt_map[2][4] = {{0, 1, 2, 0}, {2, 1, 0, 1}};

/* Writes an archive of a pickle with storage '0' and '1'; `counts` is NULL for 1 to 8. */
static inline void pt_write(const char *path, const void *pickle, size_t size, const void *counts,
                            size_t counts_size)
{
    static const int32_t usual[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    pt_file file;
    pt_start(&file);
    pt_add(&file, "a/data.pkl", pickle, size, ZIP_STORED);
    pt_add(&file, "a/data/0", counts != NULL ? counts : usual,
           counts != NULL ? counts_size : sizeof(usual), ZIP_STORED);
    pt_add(&file, "a/data/1", pt_map, sizeof(pt_map), ZIP_STORED);
    pt_add(&file, "a/version", "3\n", 2, ZIP_STORED);
    pt_finish(&file, path);
}

static inline void pt_write_words(const char *path, const char *words, const void *counts,
                                  size_t counts_size)
{
    unsigned char pickle[2048];
    assert_true(strlen(words) < sizeof(pickle) / 2);
    pt_write(path, pickle, pt_pickle(words, pickle), counts, counts_size);
}

#endif
