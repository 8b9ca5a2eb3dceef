/* SPDX-License-Identifier: MIT */
/* The numbers of the recording and of the map that lie in tests/data/format in every format. */
#ifndef EPLB_TESTS_FORMAT_RECORDING_H
#define EPLB_TESTS_FORMAT_RECORDING_H

#include <stdint.h>

enum { STEPS = 6, LAYERS = 3, EXPERTS = 8, SLOTS = 12, GPUS = 4 };

static const double recorded[STEPS][LAYERS][EXPERTS] = {{{90, 151, 96, 45, 70, 42, 121, 409},
                                                         {81, 52, 212, 166, 138, 48, 114, 213},
                                                         {60, 186, 41, 89, 46, 198, 75, 329}},
                                                        {{87, 149, 75, 42, 73, 45, 130, 423},
                                                         {70, 66, 211, 156, 130, 40, 111, 240},
                                                         {72, 174, 39, 75, 42, 190, 80, 352}},
                                                        {{102, 120, 107, 47, 67, 42, 115, 424},
                                                         {62, 64, 175, 188, 140, 37, 116, 242},
                                                         {66, 179, 47, 56, 39, 200, 78, 359}},
                                                        {{92, 135, 72, 38, 77, 42, 125, 443},
                                                         {83, 66, 176, 168, 137, 37, 132, 225},
                                                         {64, 173, 38, 91, 32, 185, 77, 364}},
                                                        {{91, 145, 80, 61, 77, 35, 108, 427},
                                                         {66, 60, 204, 163, 127, 36, 122, 246},
                                                         {69, 155, 48, 74, 47, 216, 65, 350}},
                                                        {{115, 145, 97, 44, 64, 41, 126, 392},
                                                         {64, 66, 184, 166, 136, 51, 136, 221},
                                                         {74, 141, 50, 63, 36, 222, 71, 367}}};

static const double recorded_total[LAYERS][EXPERTS] = {{577, 845, 527, 277, 428, 247, 725, 2518},
                                                       {426, 374, 1162, 1007, 808, 249, 731, 1387},
                                                       {405, 1008, 263, 448, 242, 1211, 446, 2121}};

/* Model layer ids of the three MoE layers, where a format has them; layer 0 is dense. */
static const int32_t recorded_layer_ids[LAYERS] = {1, 2, 3};

static const int32_t recorded_map[LAYERS][SLOTS] = {{0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 3, 5},
                                                    {7, 2, 1, 2, 0, 3, 2, 4, 5, 6, 7, 1},
                                                    {0, 4, 1, 5, 2, 4, 3, 6, 4, 7, 0, 4}};

/* The recording's sums as counts of slots under that map. */
static const double recorded_physical[LAYERS][SLOTS] = {
    {214, 845, 527, 151, 177, 428, 131, 725, 186, 2518, 126, 116},
    {684, 401, 163, 363, 426, 1007, 398, 808, 249, 731, 703, 211},
    {193, 55, 1008, 1211, 263, 73, 448, 446, 60, 2121, 212, 54}};

#endif
