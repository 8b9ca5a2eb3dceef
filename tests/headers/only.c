/* SPDX-License-Identifier: MIT */
/* Compiled once for each public header, with that header in front: ISO C wants something in it. */
typedef int something;
