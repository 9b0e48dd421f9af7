/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time service's lines computed again from its log, of bw-timed --log-exchanges, by the same estimates.
 *
 * What was computed has to be, bit for bit, what the log says was published. It is where program and processor are those of
 * the log: another mathematical library may round the last bit of a logarithm otherwise.
 */
#ifndef BW_TIMESERVICE_RECOMPUTE_H
#define BW_TIMESERVICE_RECOMPUTE_H

#include <stdbool.h>
#include <stdio.h>

enum { RECOMPUTE_ERROR_BYTES = 512 };

/**
 * Compute a log's lines again, up to the first that differs.
 *
 * @param json   write each batch as a JSON object, else as text
 * @param error  receives one line, "FILE:LINE: …", unless all is equal
 * @return EXIT_DONE: all are equal; EXIT_INVALID: one differs; EXIT_BAD_INPUT: the log is damaged, or has no exchanges
 */
int recompute(const char *path, bool json, FILE *out, char error[RECOMPUTE_ERROR_BYTES]);

#endif
