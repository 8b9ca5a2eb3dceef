/* SPDX-License-Identifier: MIT */
/* memfd_create */
#define _GNU_SOURCE

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define LONGEST_NAME 64

static char directory[32];
static bool has_directory;

static void write_all(FILE *file, const uint8_t *data, size_t size)
{
    if (file == NULL || fwrite(data, 1, size, file) != size || fflush(file) != 0) {
        fuzz_fail("cannot write the input to a file");
    }
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static FILE *file;
    static char path[32];
    if (file == NULL) {
        int fd = memfd_create("input", MFD_CLOEXEC);
        file = fd >= 0 ? fdopen(fd, "wb") : NULL;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (file == NULL || fseek(file, 0, SEEK_SET) != 0 || ftruncate(fileno(file), 0) != 0) {
        fuzz_fail("cannot make a file for the input");
    }
    write_all(file, data, size);
    return path;
}

static void path_in_directory(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%.*s", directory, LONGEST_NAME, name);
}

static void empty_directory(void)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[128];
        path_in_directory(path, entry->d_name);
        if (entry->d_name[0] != '.') {
            (void)unlink(path);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
}

static void remove_directory(void)
{
    empty_directory();
    (void)rmdir(directory);
}

static void make_directory(void)
{
    if (!has_directory) {
        bool has_memory = access("/dev/shm", W_OK) == 0;
        snprintf(directory, sizeof(directory), "%s/eplb-fuzz-XXXXXX",
                 has_memory ? "/dev/shm" : "/tmp");
        has_directory = mkdtemp(directory) != NULL && atexit(remove_directory) == 0;
    }
    if (!has_directory) {
        fuzz_fail("cannot make a directory for the input");
    }
    empty_directory();
}

/* Whether a line `==> NAME <==` begins here: its name, and where the content behind it begins. */
static bool read_heading(const uint8_t *data, const uint8_t *end, char name[LONGEST_NAME + 1],
                         const uint8_t **content)
{
    static const char before[] = "==> ";
    static const char behind[] = " <==\n";
    if (end - data < 10 || memcmp(data, before, 4) != 0) {
        return false;
    }
    size_t length = 0;
    const uint8_t *next = data + 4;
    while (end - next > 5 && length<LONGEST_NAME && * next> 0x20 && *next < 0x7f && *next != '/') {
        name[length++] = (char)*next++;
    }
    name[length] = '\0';
    *content = next + 5;
    return length > 0 && name[0] != '.' && end - next >= 5 && memcmp(next, behind, 5) == 0;
}

/* Starts the next file of the directory, which ends the one before. */
static FILE *start_file(FILE *before, const char *name)
{
    char path[128];
    path_in_directory(path, name);
    return before != NULL ? freopen(path, "wb", before) : fopen(path, "wb");
}

const char *fuzz_directory(const uint8_t *data, size_t size, int32_t *files)
{
    const uint8_t *end = data + size;
    const uint8_t *content = data;
    const uint8_t *next = data;
    char name[LONGEST_NAME + 1];
    FILE *file = NULL;
    make_directory();
    *files = 0;
    for (; data < end; data = next) {
        const uint8_t *behind;
        next = data + 1;
        if (!read_heading(data, end, name, &behind)) {
            continue;
        }
        if (file != NULL) {
            write_all(file, content, (size_t)(data - content));
        }
        file = start_file(file, name);
        ++*files;
        content = next = behind;
    }
    if (file != NULL) {
        write_all(file, content, (size_t)(end - content));
        (void)fclose(file);
    }
    return directory;
}
