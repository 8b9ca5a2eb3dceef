/* SPDX-License-Identifier: MIT */
#include "format/probe_json.h"

#include "format/scanner.h"

/* Errors are not asked for: what is malformed is for the reader to say. */
static bool start_probe(const eplb_probe *probe, char first, eplb_input *input,
                        eplb_scanner *scanner)
{
    eplb_input_from_memory(input, NULL, probe->data, probe->size);
    return eplb_scanner_init(scanner, input, NULL) == EPLB_OK &&
           eplb_scan_expect(scanner, first, "", NULL) == EPLB_OK;
}

bool eplb_probe_json_key(const eplb_probe *probe, const char *key)
{
    eplb_input input;
    eplb_scanner scanner;
    bool found = false;
    bool more = start_probe(probe, '{', &input, &scanner);
    bool first = true;
    while (more && !found) {
        char next[EPLB_KEY_SIZE];
        if (eplb_scan_next_key(&scanner, &first, next, &more, NULL) != EPLB_OK || !more) {
            break;
        }
        found = strcmp(next, key) == 0;
        more = eplb_scan_skip(&scanner, NULL) == EPLB_OK;
    }
    eplb_scanner_close(&scanner);
    return found;
}

/* The byte behind the '[' that the content begins with; EPLB_SCAN_END: it does not. */
static int first_in_list(const eplb_probe *probe)
{
    eplb_input input;
    eplb_scanner scanner;
    int next = EPLB_SCAN_END;
    if (!start_probe(probe, '[', &input, &scanner) ||
        eplb_scan_peek(&scanner, &next, NULL) != EPLB_OK) {
        next = EPLB_SCAN_END;
    }
    eplb_scanner_close(&scanner);
    return next;
}

bool eplb_probe_json_list(const eplb_probe *probe)
{
    int first = first_in_list(probe);
    return first == '[' || first == '-' || (first >= '0' && first <= '9');
}

bool eplb_probe_json_rows(const eplb_probe *probe)
{
    return first_in_list(probe) == '[';
}
