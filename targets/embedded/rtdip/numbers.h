/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence numbers of frames between a port of ours and a place: the next one that is sent, or which of those that should have
 * come are missing. Pure. The places that were busy last are kept; one that is forgotten begins anew, which counts nothing.
 */
#ifndef RTDIP_NUMBERS_H
#define RTDIP_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rtdip.h"

enum {
	NUMBERS_PLACES_MAX = 64,
	NUMBERS_NEAR = 65536, /* a step further than that is believed when a second frame is there */
};

static inline bool rtdip_same_address(const struct rtdip_address *one, const struct rtdip_address *other)
{
	return one->port == other->port && memcmp(one->mac, other->mac, RTDIP_MAC_BYTES) == 0;
}

struct place_numbers {
	struct rtdip_address place;
	uint16_t own_port; /* 0: free */
	uint32_t number;   /* the next one that is sent; the highest that has come */
	enum rtdip_priority priority; /* of the one that has come */
	uint32_t missing;
	bool doubted;      /* one that was out of line has come: */
	uint32_t doubtful;
	uint64_t used; /* when, in uses of all */
};

struct numbers {
	uint64_t uses;
	struct place_numbers places[NUMBERS_PLACES_MAX];
};

/** The number of the next frame to a place; whoever has sent it moves it on. */
uint32_t *numbers_next(struct numbers *numbers, uint16_t own_port, const struct rtdip_address *to);

/**
 * Note a frame that has come.
 *
 * @return by how much more are missing than before; -1: one that had been overtaken has come
 */
int64_t numbers_heard(struct numbers *numbers, const struct rtdip_message *message);

#endif
