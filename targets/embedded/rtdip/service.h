/* SPDX-License-Identifier: Apache-2.0 */
/* What goes between the service of an interface and the processes that have ports, over a SOCK_SEQPACKET socket. */
#ifndef RTDIP_SERVICE_H
#define RTDIP_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "rtdip.h"

struct sockaddr_un;

#define RTDIP_SOCKET "/run/benchwright/rtdip.sock"

enum { RTDIP_SERVICE_VERSION = 1 }; /* of what stands here, and of struct rtdip_record; 0: builds before there were versions */

enum rtdip_verb { RTDIP_HELLO, RTDIP_BIND, RTDIP_UNBIND, RTDIP_SHOW };

struct rtdip_request {
	uint32_t verb;
	uint32_t ring_bytes;
	uint16_t port;
	uint16_t version; /* stands here in every version */
};

struct rtdip_answer {
	int32_t result; /* 0 or a port; -errno; in every version but 0 -EPROTO: the service has another one. It hangs up */
	uint32_t ring_bytes;
	uint8_t mac[RTDIP_MAC_BYTES];
	uint16_t data_max_bytes; /* that a frame carries: the MTU of the interface */
	uint32_t version;        /* the service's, 16 bits; stands here in every version. Of 0 a text may begin here */
	/* Of RTDIP_HELLO with a descriptor that sends; of RTDIP_BIND with that of the ring. RTDIP_SHOW: text follows. */
};

/** Whether a ring can have this size. */
static inline bool rtdip_is_ring_size(uint32_t bytes)
{
	return bytes >= RTDIP_RING_MIN_BYTES && bytes <= RTDIP_RING_MAX_BYTES && (bytes & (bytes - 1)) == 0;
}

/** Connect to a service. @return a socket, which the caller closes, or -errno */
int rtdip_connect(const char *path);

enum { RTDIP_SHOW_BYTES = 192 * 1024 }; /* all ports with the largest numbers; what a socket takes as one message has to be more */

/* As struct service_command has them. */
int rtdip_serve(const char *interface, const char *socket_path, int64_t group, bool generic);
int rtdip_show(const char *socket_path);

#endif
