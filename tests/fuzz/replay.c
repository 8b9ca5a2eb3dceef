/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target on each file of a corpus, in builds without libFuzzer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fuzz_fail("%s: cannot open", path);
    }
    long size = ftell(file);
    rewind(file);
    uint8_t *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) {
        fuzz_fail("%s: cannot read", path);
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

/* Names each file before it runs it, so that the last one on the log is the one that failed. */
static int run_directory(const char *directory)
{
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    int count = 0;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[4096];
        int length = snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] == '.' || (size_t)length >= sizeof(path)) {
            continue;
        }
        puts(path);
        (void)fflush(stdout);
        run_file(path);
        count++;
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    return count;
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? run_directory(argv[1]) : 0;
    printf("%d inputs\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
