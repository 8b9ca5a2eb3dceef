/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "byte_size.h"
#include "message.h"
#include "nearest.h"
#include "output.h"

typedef struct parser {
    const command *command;
    int argc;
    char **argv;
    int next; /* argument to look at */
    char *values;
    bool *seen;      /* [option_count] */
    size_t operands; /* seen */
    bool help;
} parser;

/* Reads a decimal number that is the whole of `text` up to `end`. */
static bool parse_number(const char *text, const char *end, int64_t *number)
{
    const char *digits = *text == '-' ? text + 1 : text;
    if (digits == end || *digits < '0' || *digits > '9') {
        return false;
    }
    char *stop;
    errno = 0;
    *number = strtoll(text, &stop, 10);
    return stop == end && errno == 0;
}

static int parse_int(const parser *self, const option *opt, const char *text, int32_t *target)
{
    int64_t number;
    if (!parse_number(text, text + strlen(text), &number) || number < opt->minimum ||
        number > opt->maximum) {
        return usage_error(self->command->name, "--%s '%s': not a whole number in %d..%d",
                           opt->name, text, opt->minimum, opt->maximum);
    }
    *target = (int32_t)number;
    return EXIT_DONE;
}

static int parse_seed(const parser *self, const option *opt, const char *text, uint64_t *target)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        return usage_error(self->command->name, "--%s '%s': not a whole number in 0..%llu",
                           opt->name, text, (unsigned long long)UINT64_MAX);
    }
    *target = number;
    return EXIT_DONE;
}

/* False: the text is no decimal number. */
static bool read_decimal(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return text[strspn(text, "0123456789.e+-")] == '\0' && end != text && *end == '\0';
}

static int parse_amount(const parser *self, const option *opt, const char *text, double *target)
{
    double number;
    if (!read_decimal(text, &number) || !(number >= opt->minimum && number <= opt->maximum)) {
        return usage_error(self->command->name, "--%s '%s': not a number in %d..%d", opt->name,
                           text, opt->minimum, opt->maximum);
    }
    *target = number;
    return EXIT_DONE;
}

static int parse_real(const parser *self, const option *opt, const char *text, double *target)
{
    double number;
    bool is_decimal = read_decimal(text, &number);
    if (!is_decimal || !(number > opt->minimum && number <= opt->maximum)) {
        return usage_error(self->command->name, "--%s '%s': not a number above %d and up to %d",
                           opt->name, text, opt->minimum, opt->maximum);
    }
    *target = number;
    return EXIT_DONE;
}

static int parse_choice(const parser *self, const option *opt, const char *text, int32_t *target)
{
    nearest search;
    nearest_begin(&search, text);
    for (int32_t i = 0; opt->choices[i] != NULL; i++) {
        if (strcmp(opt->choices[i], text) == 0) {
            *target = i;
            return EXIT_DONE;
        }
        nearest_offer(&search, opt->choices[i]);
    }
    char hint[64];
    return usage_error(self->command->name, "--%s '%s': not one of %s%s", opt->name, text,
                       opt->argument, nearest_hint(&search, "", hint, sizeof(hint)));
}

static int parse_text(const parser *self, const option *opt, const char *text, const char **target)
{
    if (*text == '\0') {
        return usage_error(self->command->name, "--%s '': empty", opt->name);
    }
    *target = text;
    return EXIT_DONE;
}

static int append_text(const parser *self, const option *opt, const char *text, text_list *list)
{
    if (list->items == NULL) {
        list->items = calloc((size_t)self->argc, sizeof(*list->items));
        if (list->items == NULL) {
            return out_of_memory();
        }
    }
    int status = parse_text(self, opt, text, &list->items[list->count]);
    list->count += status == EXIT_DONE ? 1 : 0;
    return status;
}

/* The numbers first, first + add, ... or first, first * times, ... up to `last`. */
typedef struct id_range {
    int64_t first;
    int64_t last;
    int64_t add;
    int64_t times;
} id_range;

/* Reads "N", "N-M", "N-M+ADD" or "N-MxTIMES" up to a comma or the end. */
static bool parse_range(const char *text, id_range *range, const char **end)
{
    *end = text + strcspn(text, ",");
    *range = (id_range){.add = 1, .times = 1};
    const char *dash = memchr(text, '-', (size_t)(*end - text));
    if (dash == NULL) {
        bool is_number = parse_number(text, *end, &range->first);
        range->last = range->first;
        return is_number;
    }
    const char *step = dash + 1 + strcspn(dash + 1, "x+,");
    bool adds = *step == '+';
    bool multiplies = *step == 'x';
    range->add = multiplies ? 0 : 1;
    int64_t *number = adds ? &range->add : &range->times;
    if ((adds || multiplies) && (!parse_number(step + 1, *end, number) ||
                                 *number < (adds ? 1 : 2) || *number > INT32_MAX)) {
        return false;
    }
    return dash > text && parse_number(text, dash, &range->first) &&
           parse_number(dash + 1, step, &range->last);
}

static int parse_ids(const parser *self, const option *opt, const char *text, id_list *list)
{
    list->items = calloc((size_t)opt->maximum + 1, sizeof(*list->items));
    if (list->items == NULL) {
        return out_of_memory();
    }
    int64_t previous = (int64_t)opt->minimum - 1;
    const char *next = strcmp(text, "none") != 0 ? text : NULL;
    while (next != NULL) {
        id_range range;
        const char *end;
        if (!parse_range(next, &range, &end) || range.first <= previous ||
            range.last < range.first || range.last > opt->maximum ||
            (range.first == 0 && range.add == 0)) {
            return usage_error(self->command->name,
                               "--%s '%s': '%.*s' is not a number or a range A-B, A-B+STEP or "
                               "A-BxFACTOR of %d..%d, larger than those before it",
                               opt->name, text, (int)(end - next), next, opt->minimum,
                               opt->maximum);
        }
        for (int64_t id = range.first; id <= range.last; id = id * range.times + range.add) {
            list->items[list->count++] = (int32_t)id;
            previous = id;
        }
        next = *end == ',' ? end + 1 : NULL;
    }
    return EXIT_DONE;
}

static int parse_size(const parser *self, const option *opt, const char *text, const char *end,
                      int64_t *target)
{
    if (!parse_byte_size(text, end, target) || *target < opt->minimum) {
        return usage_error(self->command->name,
                           "--%s '%.*s': not a size such as 80GiB, 80G or 80000000000, up to 8 PiB",
                           opt->name, (int)(end - text), text);
    }
    return EXIT_DONE;
}

static int parse_sizes(const parser *self, const option *opt, const char *text, size_list *list)
{
    list->items = calloc(strlen(text) + 1, sizeof(*list->items));
    if (list->items == NULL) {
        return out_of_memory();
    }
    int status = EXIT_DONE;
    for (const char *next = text; next != NULL && status == EXIT_DONE;) {
        const char *end = next + strcspn(next, ",");
        status = parse_size(self, opt, next, end, &list->items[list->count++]);
        next = *end == ',' ? end + 1 : NULL;
    }
    return status;
}

/* Who names standard output in another way wants the same: the report elsewhere. */
static int parse_output(const parser *self, const option *opt, const char *text,
                        const char **target)
{
    bool is_standard = strcmp(text, "/dev/stdout") == 0 || strcmp(text, "/dev/fd/1") == 0 ||
                       strcmp(text, "/proc/self/fd/1") == 0;
    return parse_text(self, opt, is_standard ? "-" : text, target);
}

static int set_value(const parser *self, const option *opt, const char *text)
{
    void *target = self->values + opt->target;
    switch (opt->kind) {
    case OPTION_FLAG:
        *(bool *)target = true;
        return EXIT_DONE;
    case OPTION_INT:
        return parse_int(self, opt, text, target);
    case OPTION_SEED:
        return parse_seed(self, opt, text, target);
    case OPTION_REAL:
        return parse_real(self, opt, text, target);
    case OPTION_AMOUNT:
        return parse_amount(self, opt, text, target);
    case OPTION_CHOICE:
        return parse_choice(self, opt, text, target);
    case OPTION_TEXT:
        return parse_text(self, opt, text, target);
    case OPTION_OUTPUT:
        return parse_output(self, opt, text, target);
    case OPTION_TEXTS:
        return append_text(self, opt, text, target);
    case OPTION_IDS:
        return parse_ids(self, opt, text, target);
    case OPTION_SIZE:
        return parse_size(self, opt, text, text + strlen(text), target);
    case OPTION_SIZES:
        return parse_sizes(self, opt, text, target);
    }
    return EXIT_USAGE;
}

static const option *find_option(const parser *self, const char *name, size_t length)
{
    for (size_t i = 0; i < self->command->option_count; i++) {
        const option *opt = &self->command->options[i];
        if (strlen(opt->name) == length && memcmp(opt->name, name, length) == 0) {
            return opt;
        }
    }
    return NULL;
}

static int unknown_option(const parser *self, const char *argument)
{
    const char *name = argument + strspn(argument, "-");
    nearest search;
    nearest_begin(&search, name);
    for (size_t i = 0; i < self->command->option_count; i++) {
        nearest_offer(&search, self->command->options[i].name);
    }
    char hint[64];
    return usage_error(self->command->name, "unknown option '%s'%s", argument,
                       nearest_hint(&search, "--", hint, sizeof(hint)));
}

/* The value of an option: behind '=', or the next argument. A next argument that looks like an
 * option is one: a forgotten value must not swallow it. */
static const char *take_value(parser *self, const char *equals)
{
    if (equals != NULL) {
        return equals + 1;
    }
    if (self->next >= self->argc || strncmp(self->argv[self->next], "--", 2) == 0) {
        return NULL;
    }
    return self->argv[self->next++];
}

static int parse_option(parser *self, const char *argument)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *equals = name[length] == '=' ? name + length : NULL;
    const option *opt = find_option(self, name, length);
    if (opt == NULL) {
        return unknown_option(self, argument);
    }
    const char *text = NULL;
    if (opt->kind == OPTION_FLAG && equals != NULL) {
        return usage_error(self->command->name, "--%s takes no value, got '%s'", opt->name,
                           equals + 1);
    }
    if (opt->kind != OPTION_FLAG) {
        text = take_value(self, equals);
        if (text == NULL) {
            return usage_error(self->command->name, "--%s needs a value %s", opt->name,
                               opt->argument);
        }
    }
    bool *seen = &self->seen[opt - self->command->options];
    if (*seen && opt->kind != OPTION_TEXTS) {
        return usage_error(self->command->name, "--%s is given twice", opt->name);
    }
    *seen = true;
    return set_value(self, opt, text);
}

/* What the help calls the next operand; NULL: there are no more. */
static const char *next_operand(const parser *self)
{
    const size_t most = sizeof(self->command->operands) / sizeof(self->command->operands[0]);
    return self->operands < most ? self->command->operands[self->operands] : NULL;
}

/* Puts an argument into a list that has room for all of them. */
static int append_operand(const parser *self, const char *argument)
{
    const option operand = {.name = self->command->operand_list};
    void *target = self->values + self->command->operand_list_target;
    return *argument != '\0' ? append_text(self, &operand, argument, target)
                             : usage_error(self->command->name, "%s '': empty", operand.name);
}

static int parse_operand(parser *self, const char *argument)
{
    if (self->command->operand_list != NULL) {
        return append_operand(self, argument);
    }
    const char *name = next_operand(self);
    if (name == NULL) {
        return usage_error(self->command->name, "unexpected argument '%s'", argument);
    }
    if (*argument == '\0') {
        return usage_error(self->command->name, "%s '': empty", name);
    }
    size_t target = self->command->operand_targets[self->operands++];
    *(const char **)(void *)(self->values + target) = argument;
    return EXIT_DONE;
}

static int parse_arguments(parser *self)
{
    bool only_operands = false;
    int status = EXIT_DONE;
    while (self->next < self->argc && status == EXIT_DONE) {
        const char *argument = self->argv[self->next++];
        if (only_operands || argument[0] != '-' || argument[1] == '\0') {
            status = parse_operand(self, argument);
        } else if (strcmp(argument, "--") == 0) {
            only_operands = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            self->help = true;
            return EXIT_DONE;
        } else if (argument[1] != '-') {
            status = unknown_option(self, argument);
        } else {
            status = parse_option(self, argument);
        }
    }
    if (status == EXIT_DONE && next_operand(self) != NULL) {
        status = usage_error(self->command->name, "%s is missing", next_operand(self));
    }
    return status;
}

bool options_parse(const command *self, int argc, char **argv, void *values, int *exit_code)
{
    parser parse = {.command = self, .argc = argc, .argv = argv, .values = values};
    parse.seen = calloc(self->option_count, sizeof(*parse.seen));
    if (parse.seen == NULL) {
        *exit_code = out_of_memory();
        return false;
    }
    *exit_code = parse_arguments(&parse);
    free(parse.seen);
    if (*exit_code == EXIT_DONE && parse.help) {
        options_help(self, stdout);
        *exit_code = output_finish(EXIT_DONE);
        return false;
    }
    return *exit_code == EXIT_DONE;
}

void options_release(const command *self, void *values)
{
    if (self->operand_list != NULL) {
        text_list *list = (void *)((char *)values + self->operand_list_target);
        free(list->items);
        *list = (text_list){0};
    }
    for (size_t i = 0; i < self->option_count; i++) {
        void *target = (char *)values + self->options[i].target;
        if (self->options[i].kind == OPTION_TEXTS) {
            free(((text_list *)target)->items);
            *(text_list *)target = (text_list){0};
        } else if (self->options[i].kind == OPTION_IDS) {
            free(((id_list *)target)->items);
            *(id_list *)target = (id_list){0};
        } else if (self->options[i].kind == OPTION_SIZES) {
            free(((size_list *)target)->items);
            *(size_list *)target = (size_list){0};
        }
    }
}
