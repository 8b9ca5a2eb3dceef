/* SPDX-License-Identifier: MIT */
#ifndef EPLB_EXPORT_H
#define EPLB_EXPORT_H

/* Marks what the shared libraries export; everything else is hidden. */
#if defined(__GNUC__)
#define EPLB_API __attribute__((visibility("default")))
#define EPLB_PRINTF(format_index, first_argument)                                                  \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define EPLB_API
#define EPLB_PRINTF(format_index, first_argument)
#endif

#ifdef __cplusplus
#define EPLB_BEGIN_DECLS extern "C" {
#define EPLB_END_DECLS }
#else
#define EPLB_BEGIN_DECLS
#define EPLB_END_DECLS
#endif

#endif
