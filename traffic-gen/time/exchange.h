/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client of the two-way time transfer: bursts of requests to one responder (`bw-traffic offset --serve`), whose
 * exchanges are fed to an estimator. The estimator stays pure; the sockets and the clock are here.
 */
#ifndef BW_EXCHANGE_H
#define BW_EXCHANGE_H

#include "port/port.h"
#include "time/twoway.h"

struct exchange_peer {
	port_socket sock;
	uint64_t cookie;        /* tells our replies from others' */
	uint32_t sequence;      /* of the last request */
	bool kernel_stamps;     /* t4 is the kernel's receive stamp where there is one: it shortens the round trip */
	uint64_t requests;      /* sent so far */
	uint64_t replies;       /* matched so far */
};

/**
 * Open a socket to a responder.
 *
 * @param cookie  differs between clients; any number
 * @return 0, or -errno (nothing is left open)
 */
int exchange_open(struct exchange_peer *peer, const struct address *responder, uint64_t cookie);
void exchange_close(struct exchange_peer *peer);

/**
 * Run one burst, one request at a time, and end it at the estimator. A request without a reply within the time-out is
 * lost; after two losses in a row the burst ends. Ends early when a stop is requested.
 *
 * @param tai         the clock of t1 and t4
 * @param count       requests
 * @param timeout_ns  for each reply
 * @param step_ns     as for twoway_end_burst()
 * @return what twoway_end_burst() says
 */
enum twoway_outcome exchange_burst(struct exchange_peer *peer, const struct port_tai *tai, struct twoway *twoway,
				   int count, int64_t timeout_ns, int64_t *step_ns);

#endif
