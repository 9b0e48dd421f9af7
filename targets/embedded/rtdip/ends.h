/* SPDX-License-Identifier: Apache-2.0 */
/* An end of a measurement, over RTDiP or over UDP: so both are measured by the same program. */
#ifndef RTDIP_ENDS_H
#define RTDIP_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "fragments.h"
#include "port/port.h"
#include "rtdip.h"

enum {
	END_MESSAGE_MAX_BYTES = 65507,     /* a datagram of UDP at most */
	END_BUFFER_BYTES = 4 * 1024 * 1024 /* with fragments: a window of 32 such messages, also in frames of an MTU of 1500 */
};

struct end {
	struct rtdip *handle; /* NULL: UDP */
	uint16_t port;
	port_socket sock;
	bool busy;            /* do not sleep while waiting */
	bool no_service;      /* end_open failed by the service of RTDiP, not by the port */
	bool fragments;       /* messages may be of more than one frame */
	struct rtdip_fragment next; /* that is sent */
	struct assembly assembly;   /* of what comes */
	int64_t busy_poll_ns; /* UDP: how long who waits polls the card before it sleeps */
	int64_t heard_monotonic_ns; /* when the last message was in our hands */
	int64_t receiving_ns; /* of that: from the driver's hands (XDP, or the kernel's stamp) to ours; less than 0: not known */
};

struct peer {
	struct rtdip_address rtdip;
	struct address udp;
};

/**
 * Open an end.
 *
 * @param local        "7000": a port of RTDiP; "10.0.0.1:7000": of UDP; "0": any of RTDiP
 * @param socket_path  of the service of RTDiP
 * @param flags        of rtdip_open()
 * @param fragments    messages of up to END_MESSAGE_MAX_BYTES, with room for many; over RTDiP all are in fragments, as at the other end
 * @return 0 (end_close), -EINVAL (not a place), or -errno
 */
int end_open(struct end *end, const char *local, const char *socket_path, unsigned int flags, bool fragments);
void end_close(struct end *end);

/**
 * Let who waits for a message poll the card, rather than its interrupts, for so long before it sleeps.
 *
 * @return 0; -ENOTSUP: not UDP, or the system cannot, or not permitted
 */
int end_set_busy_poll(struct end *end, int busy_poll_us);

/** Let receiving_ns be known of UDP, too, where the kernel has stamps. */
void end_stamp_received(struct end *end);

bool end_is_same_peer(const struct end *end, const struct peer *one, const struct peer *other);

/** Read who is sent to: "02:00:00:00:00:01/7000" for RTDiP, "10.0.0.1:7000" for UDP. @return 0 or -EINVAL */
int end_parse_peer(const struct end *end, const char *text, struct peer *peer);

/** @return size_bytes, or -errno */
int64_t end_send(struct end *end, const struct peer *to, enum rtdip_priority priority, const void *data, size_t size_bytes);

/**
 * @param data  with fragments the same room at each call: a message that is not whole yet stays there
 * @return bytes of the message, or -errno: -ETIMEDOUT, -EINTR, …
 */
int64_t end_receive(struct end *end, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes,
		    int64_t timeout_ns);

#endif
