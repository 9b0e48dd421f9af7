/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches the kernel's transmit stamps of one link with the messages that asked for them. Driven by the producer's
 * thread in its idle time; bounded: of more than TXSTAMPS_PENDING_MAX open requests the oldest is forgotten.
 */
#ifndef BW_TXSTAMPS_H
#define BW_TXSTAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "port/port.h"

enum { TXSTAMPS_PENDING_MAX = 64 };

struct txstamps {
	uint32_t asked; /* requests in all; the last TXSTAMPS_PENDING_MAX are kept */
	uint32_t open;  /* of the kept ones, not answered */
	struct txstamps_request {
		uint32_t key;        /* struct port_transmitted */
		bool open;
		int64_t sent_tai_ns; /* first attempt to write */
	} requests[TXSTAMPS_PENDING_MAX];
};

/** Note a message whose last byte was written. */
void txstamps_ask(struct txstamps *stamps, uint32_t key, int64_t sent_tai_ns);
/** Forget all requests: the connection is a new one. */
void txstamps_reset(struct txstamps *stamps);
/**
 * Read the stamps that are there and record (transmitted - sent) of each counted message.
 *
 * @return how many reports of the kernel were read, at most TXSTAMPS_PENDING_MAX
 */
int txstamps_drain(struct txstamps *stamps, port_socket sock, const struct port_tai *tai,
		   struct histogram *transmit_stack);

#endif
