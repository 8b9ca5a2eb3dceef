/* SPDX-License-Identifier: MIT */
/* The tables of a report, at most 120 columns wide. */
#ifndef EPLB_TOOLS_REPORT_TABLE_H
#define EPLB_TOOLS_REPORT_TABLE_H

#include "report.h"

/* Layers that the tables show: the worst, or all with --all. */
int32_t report_rows_shown(const report *self);

void print_layer_table(const report *self, bool styled, FILE *out);

/* Prints nothing when no waits were given. */
void print_wait_table(const report *self, FILE *out);

/* The name, coloured by how bad it is when `styled`. */
void print_verdict_name(verdict_kind kind, bool styled, FILE *out);

#endif
