/* SPDX-License-Identifier: Apache-2.0 */
/* What a TCP connection brings, cut into messages. */
#include "traffic/receive/receiver.h"

#include <errno.h>

/* The producer has a new connection: let older ones run dry, so that a dead one does not stay for ever. */
static void supersede_others(struct endpoint *endpoint)
{
	struct incoming *incoming = endpoint->incoming;

	endpoint->fresh = false;
	for (int i = 0; i < RECEIVER_CONNECTIONS_MAX; i++) {
		struct endpoint *other = &incoming->endpoints[i];

		if (other != endpoint && atomic_load_explicit(&other->state, memory_order_acquire) == ENDPOINT_ACTIVE &&
		    !other->fresh)
			port_tcp_shutdown_input(other->sock);
	}
}

void receiver_read_tcp(struct receiver *receiver, struct endpoint *endpoint)
{
	struct port_received received = { 0 };
	int64_t length = port_recv(endpoint->sock, receiver->scratch, RECEIVER_SCRATCH_BYTES,
				   receiver->plan->capture_stamps ? &received : NULL);
	struct arrival arrival;

	if (length == -EAGAIN)
		return;
	if (length <= 0) {
		if (endpoint->position)
			tally_add(&receiver->hostile.truncated, 1);
		receiver_retire(endpoint);
		return;
	}
	arrival = receiver_arrival(receiver, &received);
	if (endpoint->fresh)
		supersede_others(endpoint);
	if (receiver_take_bytes(endpoint, receiver->scratch, (uint32_t)length, &arrival) != 0) {
		tally_add(&receiver->hostile.bad_check, 1);
		receiver_retire(endpoint);
	}
}
