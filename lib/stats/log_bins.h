/* SPDX-License-Identifier: MIT */
/* Histograms of values >= 1 whose bins are log-linear as the bits of a double: 2^bits bins of equal
 * width for each power of two. */
#ifndef EPLB_STATS_LOG_BINS_H
#define EPLB_STATS_LOG_BINS_H

#include <stdint.h>
#include <string.h>

/* The bin of a finite value >= 1. */
static inline uint64_t eplb_log_bin(double value, int bits)
{
    const double one = 1.0;
    uint64_t first;
    uint64_t own;
    memcpy(&first, &one, sizeof(first));
    memcpy(&own, &value, sizeof(own));
    return (own - first) >> (52 - bits);
}

/* The least value of a bin (>= 0, of a value below 2^62). */
static inline double eplb_log_bin_edge(int32_t bin, int bits)
{
    double octave = (double)(INT64_C(1) << (bin >> bits));
    int32_t in_octave = bin & ((1 << bits) - 1);
    return octave * (1.0 + (double)in_octave / (1 << bits));
}

/* The bin that holds the least value that `percent` of the values counted in the histogram [bins]
 * do not exceed; they are `count` (>= 1). */
static inline int32_t eplb_percentile_bin(const uint64_t *histogram, int32_t bins, uint64_t count,
                                          uint32_t percent)
{
    uint64_t wanted = count / 100 * percent + (count % 100 * percent + 99) / 100;
    uint64_t within = 0;
    int32_t bin = -1;
    while (within < wanted && bin < bins - 1) {
        within += histogram[++bin];
    }
    return bin;
}

#endif
