/* SPDX-License-Identifier: MIT */
#include "format/read_ahead.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"

#define BLOCK_SIZE ((size_t)128 << 10)
#define BLOCKS 4

/* What is read ahead, a ring of blocks. The thread fills the one behind the filled ones; the caller
 * empties the first. */
typedef struct read_ahead {
    eplb_stream stream;
    eplb_hooks hooks;
    eplb_stream *source; /* the thread's, once that runs */
    uint64_t begun;      /* bytes that were read without a thread */
    bool is_alone;       /* there will be no thread */
    char *blocks;        /* [BLOCKS][BLOCK_SIZE]; NULL: there is no thread yet */
    size_t taken;        /* of the first block; the caller's alone */

    pthread_t thread;
    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t changed;
    size_t sizes[BLOCKS];
    uint64_t packed[BLOCKS]; /* as the source's when the block was filled */
    unsigned first;
    unsigned filled;
    bool has_ended; /* no block comes behind the filled ones, because of `status` */
    bool is_closing;
    eplb_status status;
    eplb_error error;
} read_ahead;

/* Fills a block but for the last one. */
static eplb_status fill_block(eplb_stream *source, char *block, size_t *size, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    size_t got = 1;
    *size = 0;
    while (status == EPLB_OK && got > 0 && *size < BLOCK_SIZE) {
        status = source->read(source, block + *size, BLOCK_SIZE - *size, &got, error);
        *size += status == EPLB_OK ? got : 0;
    }
    return status;
}

/* Waits for an empty block; false when the stream is closed instead. With the mutex. */
static bool wait_for_room(read_ahead *self)
{
    while (self->filled == BLOCKS && !self->is_closing) {
        (void)pthread_cond_wait(&self->changed, &self->mutex);
    }
    return !self->is_closing;
}

static void *fill_blocks(void *argument)
{
    read_ahead *self = argument;
    (void)pthread_mutex_lock(&self->mutex);
    while (!self->has_ended && wait_for_room(self)) {
        unsigned block = (self->first + self->filled) % BLOCKS;
        (void)pthread_mutex_unlock(&self->mutex);
        size_t size;
        eplb_status status =
            fill_block(self->source, self->blocks + block * BLOCK_SIZE, &size, &self->error);
        (void)pthread_mutex_lock(&self->mutex);
        self->sizes[block] = size;
        self->packed[block] = self->source->packed;
        self->filled += size > 0 ? 1 : 0;
        self->status = status;
        self->has_ended = status != EPLB_OK || size < BLOCK_SIZE;
        (void)pthread_cond_signal(&self->changed);
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return NULL;
}

static bool make_lock(read_ahead *self)
{
    if (pthread_mutex_init(&self->mutex, NULL) != 0) {
        return false;
    }
    if (pthread_cond_init(&self->changed, NULL) != 0) {
        (void)pthread_mutex_destroy(&self->mutex);
        return false;
    }
    return true;
}

static void free_lock(read_ahead *self)
{
    (void)pthread_cond_destroy(&self->changed);
    (void)pthread_mutex_destroy(&self->mutex);
}

/* Where the system has no thread for it, it goes on without. */
static eplb_status start(read_ahead *self, eplb_error *error)
{
    self->blocks = eplb_alloc(&self->hooks, BLOCKS, BLOCK_SIZE);
    if (self->blocks == NULL) {
        return eplb_out_of_memory(error);
    }
    bool has_lock = make_lock(self);
    if (has_lock && eplb_thread_start(&self->thread, NULL, fill_blocks, self) == 0) {
        return EPLB_OK;
    }
    if (has_lock) {
        free_lock(self);
    }
    eplb_free(&self->hooks, self->blocks);
    self->blocks = NULL;
    self->is_alone = true;
    return EPLB_OK;
}

static void stop(read_ahead *self)
{
    (void)pthread_mutex_lock(&self->mutex);
    self->is_closing = true;
    (void)pthread_cond_signal(&self->changed);
    (void)pthread_mutex_unlock(&self->mutex);
    (void)pthread_join(self->thread, NULL);
    free_lock(self);
    eplb_free(&self->hooks, self->blocks);
}

/* The first filled block, waited for; NULL at the end. */
static const char *wait_for_block(read_ahead *self, size_t *size)
{
    (void)pthread_mutex_lock(&self->mutex);
    while (self->filled == 0 && !self->has_ended) {
        (void)pthread_cond_wait(&self->changed, &self->mutex);
    }
    bool found = self->filled > 0;
    *size = self->sizes[self->first];
    self->stream.packed = found ? self->packed[self->first] : self->stream.packed;
    (void)pthread_mutex_unlock(&self->mutex);
    return found ? self->blocks + self->first * BLOCK_SIZE : NULL;
}

static void leave_block(read_ahead *self)
{
    (void)pthread_mutex_lock(&self->mutex);
    self->first = (self->first + 1) % BLOCKS;
    self->filled--;
    self->taken = 0;
    (void)pthread_cond_signal(&self->changed);
    (void)pthread_mutex_unlock(&self->mutex);
}

static eplb_status read_block(read_ahead *self, char *data, size_t size, size_t *got,
                              eplb_error *error)
{
    size_t filled;
    const char *block = wait_for_block(self, &filled);
    if (block == NULL) {
        *got = 0;
        if (self->status != EPLB_OK && error != NULL) {
            *error = self->error;
        }
        return self->status;
    }
    *got = size < filled - self->taken ? size : filled - self->taken;
    memcpy(data, block + self->taken, *got);
    self->taken += *got;
    if (self->taken == filled) {
        leave_block(self);
    }
    return EPLB_OK;
}

static eplb_status read_ahead_read(eplb_stream *stream, char *data, size_t size, size_t *got,
                                   eplb_error *error)
{
    read_ahead *self = (read_ahead *)stream;
    if (self->blocks == NULL && !self->is_alone && self->begun >= EPLB_READ_AHEAD_BEGIN) {
        eplb_status status = start(self, error);
        if (status != EPLB_OK) {
            *got = 0;
            return status;
        }
    }
    if (self->blocks != NULL) {
        return read_block(self, data, size, got, error);
    }
    eplb_status status = self->source->read(self->source, data, size, got, error);
    self->begun += *got;
    self->stream.packed = self->source->packed;
    return status;
}

static void read_ahead_close(eplb_stream *stream)
{
    read_ahead *self = (read_ahead *)stream;
    if (self->blocks != NULL) {
        stop(self);
    }
    self->source->close(self->source);
    eplb_hooks hooks = self->hooks;
    eplb_free(&hooks, self);
}

eplb_stream *eplb_read_ahead(eplb_stream *stream, const eplb_hooks *hooks)
{
    read_ahead *self = eplb_alloc_zeroed(hooks, 1, sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->stream = (eplb_stream){.read = read_ahead_read, .close = read_ahead_close};
    self->hooks = *hooks;
    self->source = stream;
    return &self->stream;
}
