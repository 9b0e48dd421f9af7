/* SPDX-License-Identifier: Apache-2.0 */
/* One NTP server of the time service: its socket, its exchanges with their stamps, its estimate. */
#ifndef BW_TIMESERVICE_SERVER_H
#define BW_TIMESERVICE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "port/port.h"
#include "port/port_cmac.h"
#include "port/port_wait.h"
#include "timeservice/estimate.h"
#include "timeservice/local.h"
#include "timeservice/ntp_exchange.h"

enum { SERVER_ROOT_AS_SAID = -1 };

struct server_settings {
	struct address address;
	int64_t min_way_ns;       /* each way takes at least that */
	int64_t root_distance_ns; /* from the server to UTC; SERVER_ROOT_AS_SAID: what its replies say */
	bool interleave;          /* ask for the interleaved mode */
	bool user_stamps;         /* do not use the kernel's */
	uint32_t key;             /* id of the symmetric key; 0: none */
	struct port_cmac *cmac;   /* that key, of server_keys_open(); NULL: none */
};

struct server {
	struct server_settings settings;
	struct ntp_exchange exchange;
	struct estimate *estimate;
	port_socket sock;
	uint32_t sends;               /* since the socket was opened: keys of transmit stamps */
	bool stamping;                /* the kernel stamps what the socket sends and receives */
	struct exchange_server said;  /* of the last reply, refused ones too */
	struct exchange_server relied; /* of the last good one: what the time rests on */
	bool answered_ever, denied;
	bool kernel_stamps, interleaved; /* of the last sample */
	bool contradicted;            /* it starts anew after a contradiction */
	uint32_t reach;               /* the last batches, the newest in bit 0 */
	uint64_t sent, received, heard_ticks;
	unsigned int last_reject;     /* of the last exchange; NTP_GOOD: it was answered well; of its key rather than that no other came */
	bool complained;              /* of the rate, since this was cleared */
	unsigned int slowed;          /* how often its interval was doubled for that */
	int64_t rests_until_monotonic_ns; /* until then it is not asked */
};

/** Called for every datagram that is refused, and every request without a reply. */
typedef int server_refusal(void *sink, const struct server *server, unsigned int reject);

/* What exchanges have to do with. */
struct server_context {
	struct waiter *waiter;
	struct local_time local;
	int64_t timeout_ns;
	server_refusal *refusal;
	void *sink;
};

/** @return 0, -ENOMEM or -EINVAL */
int server_init(struct server *server, const struct server_settings *settings, const struct estimate_settings *estimate);
void server_close(struct server *server);

/** Open a socket of a port of its own, for a batch: what comes late finds none. @return 0 or -errno */
int server_open_socket(struct server *server);

enum server_result {
	SERVER_NOTHING,  /* no answer, none that can be used, or an interleaved one whose sample is the next one's */
	SERVER_SAMPLE,
	SERVER_EVENT,    /* a signal came: *event */
};

/**
 * Ask once and wait for the answer.
 *
 * @param sample  receives what was found out
 * @param event   of the waiter, of SERVER_EVENT
 * @return enum server_result, or -errno of waiting or logging
 */
int server_ask(struct server *server, const struct server_context *context, struct exchange_sample *sample, int *event);

/** From the server to UTC, in ns: as set, or as its last good reply says. */
int64_t server_root_distance_ns(const struct server *server);

#endif
