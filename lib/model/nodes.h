/* SPDX-License-Identifier: MIT */
/* The nodes of a cluster, by their live GPUs. */
#ifndef EPLB_MODEL_NODES_H
#define EPLB_MODEL_NODES_H

#include <eplb/cluster.h>

typedef struct eplb_nodes {
    int32_t count; /* one more than the largest node number */
    int32_t live_gpus;
    int32_t *node;  /* [gpus of the cluster]; -1: dead */
    int32_t *gpus;  /* [count] live GPUs of the node, perhaps none */
    int32_t *order; /* [live_gpus] the live GPUs' numbers in the cluster, node by node */
} eplb_nodes;

eplb_status eplb_nodes_init(eplb_nodes *nodes, const eplb_hooks *hooks, const eplb_cluster *cluster,
                            eplb_error *error);
void eplb_nodes_free(eplb_nodes *nodes, const eplb_hooks *hooks);

#endif
