/* SPDX-License-Identifier: MIT */
/* The two lists of a FastDeploy placement that say the same as its map from the experts' side. */
#ifndef EPLB_FORMAT_FASTDEPLOY_LISTS_H
#define EPLB_FORMAT_FASTDEPLOY_LISTS_H

#include "format/json_tree.h"

/* Makes sure that both are in the document and agree with the map, whose rows are read already;
 * they say how many experts there are (map->width). */
eplb_status eplb_fastdeploy_check_lists(const cJSON *tree, eplb_map *map,
                                        const eplb_read_options *options, eplb_error *error);

/* Appends both as members of an object. */
eplb_status eplb_fastdeploy_add_lists(const eplb_placement *placement, eplb_text *text,
                                      eplb_error *error);

#endif
