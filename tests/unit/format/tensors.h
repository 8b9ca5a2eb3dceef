/* SPDX-License-Identifier: MIT */
/* Files of safetensors for tests. */
#ifndef EPLB_TESTS_FORMAT_TENSORS_H
#define EPLB_TESTS_FORMAT_TENSORS_H

#include "reading.h"

typedef struct tensor_file {
    unsigned char bytes[16384];
    size_t size;
} tensor_file;

/* Begins a file with a header of so many bytes. */
static inline void begin_tensors_as(tensor_file *file, const char *header, uint64_t length)
{
    for (size_t i = 0; i < 8; i++) {
        file->bytes[i] = (unsigned char)(length >> 8 * i);
    }
    file->size = 8 + strlen(header);
    assert_true(file->size <= sizeof(file->bytes));
    memcpy(file->bytes + 8, header, strlen(header));
}

static inline void begin_tensors(tensor_file *file, const char *header)
{
    begin_tensors_as(file, header, strlen(header));
}

static inline void add_int64(tensor_file *file, int64_t value)
{
    assert_true(file->size + 8 <= sizeof(file->bytes));
    for (size_t i = 0; i < 8; i++) {
        file->bytes[file->size++] = (unsigned char)((uint64_t)value >> 8 * i);
    }
}

static inline void add_float(tensor_file *file, float value)
{
    uint32_t bits;
    assert_true(file->size + 4 <= sizeof(file->bytes));
    memcpy(&bits, &value, sizeof(bits));
    for (size_t i = 0; i < 4; i++) {
        file->bytes[file->size++] = (unsigned char)(bits >> 8 * i);
    }
}

static inline void write_tensors(const char *path, const tensor_file *file)
{
    test_write_file(path, file->bytes, file->size);
}

/* A file that must be refused: its header, and items of data. */
typedef struct bad_tensors {
    const char *header;
    eplb_status status;
    const char *message; /* a part, which may begin with the file's name "f" */
    double items[8];
    int count;
} bad_tensors;

/* Reads each as "f", with the limits of `options`: each must give its status, and a message that
 * begins with the path and has its part. */
static inline void assert_tensors_refused(const char *directory, const bad_tensors *files,
                                          size_t count, const eplb_read_options *options,
                                          bool floats)
{
    test_path path = test_join(directory, "f");
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        tensor_file file;
        eplb_error error = {0};
        begin_tensors(&file, files[i].header);
        for (int k = 0; k < files[i].count; k++) {
            if (floats) {
                add_float(&file, (float)files[i].items[k]);
            } else {
                add_int64(&file, (int64_t)files[i].items[k]);
            }
        }
        write_tensors(path.text, &file);
        eplb_status status = read_rows(path.text, options, NULL, NULL, &error);
        if (status != files[i].status || strstr(error.message, files[i].message) == NULL ||
            strncmp(error.message, path.text, strlen(path.text)) != 0) {
            print_error("%s\n  status %d, expected %d\n  message: %s\n  expected: %s\n",
                        files[i].header, (int)status, (int)files[i].status, error.message,
                        files[i].message);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

#define PARSE EPLB_ERROR_PARSE
#define DATA EPLB_ERROR_DATA
#define LIMIT EPLB_ERROR_LIMIT
#define UNSUPPORTED EPLB_ERROR_UNSUPPORTED

#define ALL_OF(files) files, sizeof(files) / sizeof((files)[0])

/* A member of a header: a vector of `experts` integers. */
#define VECTOR(name, experts, begin, end)                                                          \
    "\"" name "\":{\"dtype\":\"I64\",\"shape\":[" #experts "],\"data_offsets\":[" #begin "," #end  \
    "]}"

#endif
