/* SPDX-License-Identifier: MIT */
#include "format/mindie_config.h"

#include <string.h>

#include "format/scanner.h"

/* Reads the value of a key that may come once: *value is 0 until then. */
static eplb_status read_number(eplb_scanner *scanner, const char *key, int32_t largest,
                               int32_t *value, eplb_error *error)
{
    int64_t number = 0;
    if (*value != 0) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "second key '%s'", key);
    }
    eplb_status status = eplb_scan_integer(scanner, key, largest, &number, error);
    if (status == EPLB_OK && number == 0) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%s is 0", key);
    }
    *value = (int32_t)number;
    return status;
}

static eplb_status read_member(eplb_scanner *scanner, const char *key,
                               const eplb_read_options *options, eplb_mindie_config *config,
                               eplb_error *error)
{
    if (strcmp(key, "num_moe_layers") == 0) {
        return read_number(scanner, key, options->max_layers, &config->layers, error);
    }
    if (strcmp(key, "num_of_experts") == 0) {
        return read_number(scanner, key, options->max_experts, &config->experts, error);
    }
    return eplb_scan_skip(scanner, error);
}

static eplb_status read_members(eplb_scanner *scanner, const eplb_read_options *options,
                                eplb_mindie_config *config, eplb_error *error)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    eplb_status status = eplb_input_skip_bom(scanner->input, error);
    if (status == EPLB_OK) {
        status = eplb_scan_expect(scanner, '{', "'{'", error);
    }
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status == EPLB_OK && more) {
            status = read_member(scanner, key, options, config, error);
        }
    }
    if (status == EPLB_OK && config->layers == 0) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key 'num_moe_layers'");
    }
    return status == EPLB_OK ? eplb_scan_finish(scanner, error) : status;
}

eplb_status eplb_mindie_config_read(const eplb_reading *directory, eplb_mindie_config *config,
                                    eplb_error *error)
{
    eplb_reading child;
    eplb_scanner scanner;
    *config = (eplb_mindie_config){0};
    eplb_status status = eplb_reading_open_child(directory, EPLB_MINDIE_CONFIG, &child, error);
    if (status != EPLB_OK) {
        return status;
    }
    status = eplb_scanner_init(&scanner, &child.input, error);
    if (status == EPLB_OK) {
        status = read_members(&scanner, &directory->options, config, error);
    }
    eplb_scanner_close(&scanner);
    eplb_reading_close(&child);
    return status;
}
