/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/log.h"

typedef struct logged {
    int lines;
    int32_t level;
    char text[2 * EPLB_ERROR_MESSAGE_SIZE];
} logged;

static void keep(void *context, int32_t level, const char *message)
{
    logged *log = context;
    log->lines++;
    log->level = level;
    snprintf(log->text, sizeof(log->text), "%s", message);
}

static eplb_hooks logging_hooks(logged *log)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = keep;
    hooks.log_context = log;
    return hooks;
}

static void log_hook_gets_level_and_text(void **state)
{
    (void)state;
    logged log = {0};
    eplb_hooks hooks = logging_hooks(&log);
    eplb_log(&hooks, EPLB_LOG_WARNING, "%d scenarios, %s", 9, "summed");
    assert_int_equal(log.lines, 1);
    assert_int_equal(log.level, EPLB_LOG_WARNING);
    assert_string_equal(log.text, "9 scenarios, summed");
}

static void nothing_is_logged_by_default(void **state)
{
    (void)state;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    assert_null(hooks.log);
    eplb_log(&hooks, EPLB_LOG_INFO, "nobody listens");
}

static void log_line_stays_one_line(void **state)
{
    (void)state;
    logged log = {0};
    eplb_hooks hooks = logging_hooks(&log);
    eplb_log(&hooks, EPLB_LOG_INFO, "%s: assuming 8 logical experts", "a\nb.csv");
    assert_null(strchr(log.text, '\n'));
}

static void long_log_line_is_cut(void **state)
{
    (void)state;
    logged log = {0};
    eplb_hooks hooks = logging_hooks(&log);
    char text[4 * EPLB_ERROR_MESSAGE_SIZE];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    eplb_log(&hooks, EPLB_LOG_DEBUG, "%s", text);
    assert_int_equal(log.lines, 1);
    assert_in_range(strlen(log.text), 100, sizeof(text) - 2);
}

TEST_MAIN(cmocka_unit_test(log_hook_gets_level_and_text),
          cmocka_unit_test(nothing_is_logged_by_default), cmocka_unit_test(log_line_stays_one_line),
          cmocka_unit_test(long_log_line_is_cut))
