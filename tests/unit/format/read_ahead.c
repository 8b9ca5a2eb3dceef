/* SPDX-License-Identifier: MIT */
/* Reading ahead, also where no thread can be started: pthread_create is wrapped here. */
#include "format/read_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "support.h"

enum { SIZE = 3000017 };

static bool refuses_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    return refuses_threads ? EAGAIN : __real_pthread_create(thread, attributes, routine, argument);
}

/* Gives bytes in pieces of many sizes, and then the end or an error. */
typedef struct source {
    eplb_stream stream;
    uint64_t done;
    eplb_status end;
    pthread_t reader; /* that read last */
    bool takes_signals;
    int closed;
} source;

static char byte_at(uint64_t i)
{
    return (char)(i * 7 % 251);
}

static eplb_status read_source(eplb_stream *stream, char *data, size_t size, size_t *got,
                               eplb_error *error)
{
    source *self = (source *)stream;
    size_t piece = 1 + self->done % 70001;
    *got = 0;
    self->reader = pthread_self();
    sigset_t blocked;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    self->takes_signals = sigismember(&blocked, SIGINT) == 0;
    if (self->done == SIZE && self->end != EPLB_OK) {
        return eplb_error_set(error, self->end, "behind byte %d", SIZE);
    }
    while (*got < size && *got < piece && self->done < SIZE) {
        data[(*got)++] = byte_at(self->done++);
    }
    stream->packed = self->done / 3;
    return EPLB_OK;
}

static void close_source(eplb_stream *stream)
{
    ((source *)stream)->closed++;
}

static source make_source(eplb_status end)
{
    return (source){.stream = {.read = read_source, .close = close_source}, .end = end};
}

/* Reads all in pieces of `size`, and checks each byte. Returns the status of the last call. */
static eplb_status read_all(eplb_stream *stream, size_t size, uint64_t *read, eplb_error *error)
{
    char *data = malloc(size);
    assert_non_null(data);
    size_t got;
    eplb_status status;
    *read = 0;
    while ((status = stream->read(stream, data, size, &got, error)) == EPLB_OK && got > 0) {
        for (size_t i = 0; i < got; i++) {
            assert_int_equal(data[i], byte_at(*read + i));
        }
        *read += got;
        assert_true(stream->packed >= *read / 3);
    }
    free(data);
    return status;
}

static void assert_bytes(size_t size, eplb_status end)
{
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    source from = make_source(end);
    eplb_stream *stream = eplb_read_ahead(&from.stream, &hooks);
    uint64_t read;
    eplb_error error;
    assert_int_equal(read_all(stream, size, &read, &error), end);
    assert_int_equal(read, SIZE);
    if (end != EPLB_OK) {
        assert_string_equal(error.message, "behind byte 3000017");
    }
    assert_false(pthread_equal(from.reader, pthread_self()));
    assert_false(from.takes_signals);
    assert_int_equal(from.closed, 0);
    stream->close(stream);
    assert_int_equal(from.closed, 1);
    assert_int_equal(memory.live, 0);
}

static void all_bytes_come_in_order_from_another_thread(void **state)
{
    (void)state;
    assert_bytes(1, EPLB_OK);
    assert_bytes(4099, EPLB_OK);
    assert_bytes(131072, EPLB_OK);
    assert_bytes(1000003, EPLB_OK);
}

static void an_error_comes_behind_the_bytes_before_it(void **state)
{
    (void)state;
    assert_bytes(4099, EPLB_ERROR_PARSE);
    assert_bytes(131072, EPLB_ERROR_IO);
}

static eplb_status read_through(const eplb_hooks *hooks, void *context)
{
    (void)context;
    source from = make_source(EPLB_OK);
    eplb_stream *stream = eplb_read_ahead(&from.stream, hooks);
    if (stream == NULL) {
        assert_int_equal(from.closed, 0);
        return EPLB_ERROR_NOMEM;
    }
    uint64_t read;
    eplb_status status = read_all(stream, 4099, &read, NULL);
    stream->close(stream);
    assert_int_equal(from.closed, 1);
    return status;
}

static void each_failing_allocation_is_told(void **state)
{
    (void)state;
    test_each_failing_allocation(read_through, NULL);
}

static void without_a_thread_the_caller_reads(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    source from = make_source(EPLB_ERROR_PARSE);
    eplb_stream *stream = eplb_read_ahead(&from.stream, &hooks);
    uint64_t read;
    refuses_threads = true;
    eplb_status status = read_all(stream, 4099, &read, NULL);
    refuses_threads = false;
    assert_int_equal(status, EPLB_ERROR_PARSE);
    assert_int_equal(read, SIZE);
    assert_true(pthread_equal(from.reader, pthread_self()));
    assert_int_equal(memory.live, 1); /* no blocks */
    stream->close(stream);
    assert_int_equal(memory.live, 0);
}

static void a_short_stream_starts_no_thread(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    source from = make_source(EPLB_OK);
    from.done = SIZE - 1000;
    eplb_stream *stream = eplb_read_ahead(&from.stream, &hooks);
    char data[300];
    size_t got = 1;
    while (got > 0) {
        assert_ok(stream->read(stream, data, sizeof(data), &got, NULL), NULL);
    }
    assert_true(pthread_equal(from.reader, pthread_self()));
    assert_int_equal(memory.live, 1);
    stream->close(stream);
    assert_int_equal(memory.live, 0);
}

static void it_can_be_closed_at_any_byte(void **state)
{
    (void)state;
    for (uint64_t last = 0; last < SIZE; last += 300007) {
        test_memory memory = {0};
        eplb_hooks hooks = test_hooks(&memory);
        source from = make_source(EPLB_OK);
        eplb_stream *stream = eplb_read_ahead(&from.stream, &hooks);
        char data[5000];
        size_t got;
        for (uint64_t read = 0; read < last; read += got) {
            assert_ok(stream->read(stream, data, sizeof(data), &got, NULL), NULL);
        }
        stream->close(stream);
        assert_int_equal(from.closed, 1);
        assert_int_equal(memory.live, 0);
    }
}

TEST_MAIN(cmocka_unit_test(all_bytes_come_in_order_from_another_thread),
          cmocka_unit_test(an_error_comes_behind_the_bytes_before_it),
          cmocka_unit_test(each_failing_allocation_is_told),
          cmocka_unit_test(without_a_thread_the_caller_reads),
          cmocka_unit_test(a_short_stream_starts_no_thread),
          cmocka_unit_test(it_can_be_closed_at_any_byte))
