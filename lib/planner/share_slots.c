/* SPDX-License-Identifier: MIT */
#include "planner/share_slots.h"

#include "planner/layer.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Gives each GPU one slot more, by what it lacks of its part, while there are any left. False when
 * no GPU can take one. */
static bool give_one_each(const int64_t *room, int64_t total, int32_t gpus, int32_t slots,
                          int32_t most, const eplb_share_scratch *scratch, int32_t *shares,
                          int32_t *left)
{
    int32_t takers = 0;
    for (int32_t g = 0; g < gpus; g++) {
        if (shares[g] < smaller(room[g], most)) {
            scratch->key[g] = (double)(room[g] * slots - shares[g] * total);
            scratch->order[takers++] = g;
        }
    }
    eplb_sort_descending(scratch->order, takers, scratch->key, scratch->sorted);
    for (int32_t i = 0; i<takers && * left> 0; i++) {
        shares[scratch->order[i]]++;
        --*left;
    }
    return takers > 0;
}

bool eplb_share_slots(const int64_t *room, int32_t gpus, int32_t slots, int32_t most,
                      const eplb_share_scratch *scratch, int32_t *shares)
{
    int64_t total = 0;
    for (int32_t g = 0; g < gpus; g++) {
        total += room[g];
    }
    if (total < slots) {
        return false;
    }
    int32_t left = slots;
    for (int32_t g = 0; g < gpus; g++) {
        int64_t part = total > 0 ? room[g] * slots / total : 0;
        shares[g] = (int32_t)smaller(part, most);
        left -= shares[g];
    }
    bool fits = true;
    while (left > 0 && fits) {
        fits = give_one_each(room, total, gpus, slots, most, scratch, shares, &left);
    }
    return fits;
}
