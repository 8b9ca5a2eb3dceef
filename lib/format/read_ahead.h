/* SPDX-License-Identifier: MIT */
/* Unpacking on a thread of its own, while what was unpacked is parsed. */
#ifndef EPLB_FORMAT_READ_AHEAD_H
#define EPLB_FORMAT_READ_AHEAD_H

#include <eplb/hooks.h>

#include "format/stream.h"

/*
 * A stream of the same bytes, and errors at the same places, that owns `stream`; NULL without
 * memory, and then it does not. Once EPLB_READ_AHEAD_BEGIN bytes were read, `stream` is read on
 * another thread, which then must not call hooks and must not wait for anybody; before that, and
 * where no thread can be had, on the caller's. Memory: 0.5 MiB with the thread.
 */
eplb_stream *eplb_read_ahead(eplb_stream *stream, const eplb_hooks *hooks);

/* A short file is read before a thread would have started. */
#define EPLB_READ_AHEAD_BEGIN ((uint64_t)1 << 20)

#endif
