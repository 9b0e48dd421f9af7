/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an accelerated program and the service of its interface, bw-stackd, say to each other, over a local socket that keeps
 * messages (SOCK_SEQPACKET): each request gets one answer, by its number; events come in between. Both are of one build.
 *
 * A connection is a program: when it ends, however it does, the service takes back all that the program had. One that does not read
 * its events is cut off. Numbers are in the order of this machine but for bytes of addresses.
 *
 * Frames are Ethernet's: those that come have passed no check of a checksum; those that go have the length that IP says, the
 * receiver's MAC, one station's, and of the sender's whatever, as the service writes it. What a program may not send vanishes.
 * The socket of AF_XDP is bound, by copy, in buffers of several (XDP_PKT_CONTD), and sends when it is told (sendto).
 */
#ifndef BW_STACKD_H
#define BW_STACKD_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define STACKD_SOCKET "/run/benchwright/stackd.sock" /* unless told otherwise */

enum { STACKD_VERSION = 2, STACKD_MAC_BYTES = 6, STACKD_ADDRESSES_MAX = 19, STACKD_SHOW_BYTES = 256 * 1024 };

enum stackd_verb {
	STACKD_HELLO = 1, /* begin, once; the answer comes with two descriptors: the socket of AF_XDP, and the memory of its
			   frames. It may bring the descriptor of the program's page: program_page.h */
	STACKD_BIND,      /* have a port: a socket of the kernel that is bound to it comes as a descriptor, and proves the right to it */
	STACKD_UNBIND,    /* give it back */
	STACKD_RESOLVE,   /* how to reach an address; events follow for 256 that were asked for, an event -ENOENT ends them */
	STACKD_SHOW,      /* answered by struct stackd_answer, and the text of a JSON object behind it */
	/* Events; their number is 0. */
	STACKD_NEIGHBOUR, /* of an address that was asked for: it has another MAC, or `result` says why none */
	STACKD_ADDRESSES, /* the interface's addresses, its MAC or its MTU have changed */
	STACKD_REPORT,    /* write the page, and ask STACKD_REPORTED; it comes once until that is asked */
	/* Requests again. */
	STACKD_REPORTED,   /* the page is written */
	STACKD_STATISTICS, /* what all programs are doing: a descriptor of a text of JSON comes with the answer (docs/user-stack.md) */
};

struct stackd_request {
	uint32_t version, verb, number;
	uint8_t protocol; /* BIND, UNBIND: IPPROTO_TCP or IPPROTO_UDP */
	uint8_t family;   /* RESOLVE: AF_INET or AF_INET6 */
	uint16_t port;
	uint8_t ip[16];   /* RESOLVE: in network order; of IPv4 the first four bytes */
};

struct stackd_address {
	uint8_t family, ip[16];
};

struct stackd_answer {
	uint32_t verb, number;
	/*
	 * 0 or -errno; of all verbs -EPROTO (another version), and but for HELLO, SHOW and STATISTICS -EINVAL before a HELLO. HELLO:
	 * -ENOSPC (too many programs), -EDQUOT (of this user), -EINVAL (a page that is none). STATISTICS: -EALREADY (the one before has no answer yet).
	 * By number 0 a HELLO that nobody asked for ends a connection: -EDQUOT, -ENOSPC.
	 * BIND: -EADDRINUSE (another program has it), -EDQUOT, -ENOSPC (too many ports, as of programs), -EINVAL (the socket is not bound to it, on any address or one of the
	 * interface's, in the interface's namespace); packets to other addresses stay the kernel's, those of the other family, too, but
	 * of :: without IPV6_V6ONLY. Again by its owner it is 0: of another address of the family the port is the program's on all
	 * of that, of another family on all. RESOLVE: -ENETUNREACH (no route), -EACCES, -EINVAL, -EHOSTUNREACH (the route is
	 * prohibit, blackhole, unreachable), -EREMOTE (the way does not lead over the interface, or to more than one station: the
	 * kernel's own stack takes it), -EINPROGRESS (the neighbour is being asked: an event follows; the other fields hold
	 * already), also -EHOSTUNREACH (it does not answer).
	 * NEIGHBOUR also: -ENOENT (it had to make room for others: ask again).
	 */
	int32_t result;
	uint8_t mac[STACKD_MAC_BYTES]; /* HELLO, ADDRESSES: the interface's; RESOLVE, NEIGHBOUR: where packets for the address go */
	uint8_t family, ip[16];        /* RESOLVE, NEIGHBOUR: as asked */
	uint8_t source[16];            /* RESOLVE: the address that the host would send from */

	/* HELLO and ADDRESSES; packets to and from its other addresses are the kernel's. Those of IPv4 come first, as the host has them. */
	uint32_t interface_index, mtu_bytes, addresses;
	struct stackd_address address[STACKD_ADDRESSES_MAX];

	/*
	 * HELLO: at first all frames are the program's, which puts those for receiving into the fill ring. They are
	 * `frame_bytes` apart; the rings' sizes are in frames. A frame of Ethernet that is over a page takes several.
	 */
	uint32_t frames, frame_bytes;
	uint32_t receive_ring, transmit_ring, fill_ring, completion_ring;
};

/** @param err  result, or what has become of the connection, -errno. @return in words */
static inline const char *stackd_error(int err)
{
	switch (-err) {
	case EDQUOT: return "this user has all that one user may have of it";
	case ENOSPC: return "all of it is in use, but for root's";
	case EPROTO: return "no answer of this version";
	default: return strerror(-err);
	}
}

#endif
