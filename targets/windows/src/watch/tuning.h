/* SPDX-License-Identifier: Apache-2.0 */
/* What bw-accel --set gives a program's sockets and threads, and how that has ended. */
#ifndef BW_WATCH_TUNING_H
#define BW_WATCH_TUNING_H

#include <stdbool.h>
#include <stdint.h>

enum tuning_name {
	TUNE_NO_DELAY,
	TUNE_ACK_FREQUENCY,
	TUNE_SEND_BUFFER,
	TUNE_RECEIVE_BUFFER,
	TUNE_MULTIMEDIA_CLASS,
	TUNE_TIMER,
	TUNE_POLL,
	TUNE_COUNT,
};
enum { TUNING_TEXT_BYTES = 32, TUNING_ERROR_BYTES = 160 };

struct tuning {
	uint32_t wanted; /* 1: it is asked for */
	uint32_t held_count, refused_count; /* sockets, threads or processes that have it, and that did not get it */
	uint32_t error; /* Windows' number, of the last that did not get it; 0: what it holds is not what was asked */
	int64_t value;
	char text[TUNING_TEXT_BYTES]; /* in place of a value: the class */
};

/** @return as --set has it */
const char *tuning_name(enum tuning_name name);
/** What has it, in the plural: sockets, threads, processes. */
const char *tuning_owners(enum tuning_name name);

/**
 * Read NAME=VALUE into its place.
 *
 * @param error  says what was wrong, and what is allowed
 */
bool tuning_read(struct tuning tunings[TUNE_COUNT], const char *word, char error[TUNING_ERROR_BYTES]);

#endif
