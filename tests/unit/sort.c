/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/random.h>

#include "base/sort.h"

static void ids_come_by_key_and_equal_keys_by_id(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 7);
    double key[1000];
    int32_t ids[1000];
    int32_t scratch[1000];
    for (int32_t count = 0; count <= 1000; count += count < 40 ? 1 : 173) {
        for (int32_t i = 0; i < count; i++) {
            key[i] = (double)eplb_random_below(&random, 50);
            ids[i] = count - 1 - i;
        }
        eplb_sort_descending(ids, count, key, scratch);
        bool met[1000] = {false};
        for (int32_t i = 0; i < count; i++) {
            assert_false(met[ids[i]]);
            met[ids[i]] = true;
            if (i > 0) {
                assert_true(key[ids[i - 1]] > key[ids[i]] ||
                            (key[ids[i - 1]] == key[ids[i]] && ids[i - 1] < ids[i]));
            }
        }
    }
}

TEST_MAIN(cmocka_unit_test(ids_come_by_key_and_equal_keys_by_id))
