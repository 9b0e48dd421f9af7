/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an accelerated program says of itself: a page of memory that it makes (a memfd that can neither shrink nor grow) and hands
 * over with STACKD_HELLO. It is written when the service asks (STACKD_REPORT), and at the program's end. Numbers are in the order
 * of this machine but for bytes of addresses. Other versions may have other fields behind `version` and `size_bytes`.
 *
 * The program raises `begun`, writes, and sets `finished` to it: who reads `finished`, then all else, then `begun`, and finds both
 * the same, has what belongs together.
 */
#ifndef BW_PROGRAM_PAGE_H
#define BW_PROGRAM_PAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_PAGE_VERSION = 1, PROGRAM_PAGE_SOCKETS = 1024, PROGRAM_PAGE_NAME_BYTES = 32, PROGRAM_PAGE_IP_BYTES = 16 };

/* The largest number that every reader of JSON keeps exactly; a page with a larger one is not believed. */
#define PROGRAM_PAGE_NUMBER_MAX (UINT64_C(1) << 53)

/* Counters since the program began; they only rise. */
enum program_count {
	PROGRAM_IP_IN, /* packets */
	PROGRAM_IP_OUT,
	PROGRAM_IP_MALFORMED,
	PROGRAM_IP_CHECKSUM,
	PROGRAM_TCP_IN, /* segments */
	PROGRAM_TCP_OUT,
	PROGRAM_TCP_MALFORMED,
	PROGRAM_TCP_CHECKSUM,
	PROGRAM_TCP_NO_MEMORY,
	PROGRAM_TCP_RETRANSMITTED, /* segments that were sent again, and what found them lost */
	PROGRAM_TCP_RETRANSMITTED_BY_RACK,
	PROGRAM_TCP_RETRANSMITTED_BY_PROBE,
	PROGRAM_TCP_RETRANSMITTED_BY_TIMEOUT,
	PROGRAM_TCP_DUPLICATES, /* segments that came twice */
	PROGRAM_UDP_IN, /* datagrams */
	PROGRAM_UDP_OUT,
	PROGRAM_UDP_MALFORMED,
	PROGRAM_UDP_CHECKSUM,
	PROGRAM_UDP_NO_PORT,
	PROGRAM_UDP_FULL, /* the socket had no room */
	PROGRAM_FRAMES_IN, /* taken out of the ring, and put into it */
	PROGRAM_FRAMES_OUT,
	PROGRAM_FRAMES_NO_ROOM,     /* lost: the ring was full */
	PROGRAM_NEIGHBOUR_DROPPED,  /* packets whose receiver did not answer, or for which too many waited */
	PROGRAM_COUNTS,
};

/* A socket, or a connection whose socket is closed. */
struct program_page_socket {
	uint8_t protocol, family, state, reserved; /* IPPROTO_TCP or _UDP; 4 or 6; TCP_ESTABLISHED … of netinet/tcp.h */
	int32_t descriptor;                        /* -1: it has none: closed, or not accepted yet */
	uint8_t local_ip[PROGRAM_PAGE_IP_BYTES], peer_ip[PROGRAM_PAGE_IP_BYTES]; /* of IPv4 the first four bytes */
	uint16_t local_port, peer_port;            /* peer_port 0: no peer */
	uint32_t accept_waiting, accept_most;      /* of a listener */
	uint32_t segment_bytes;
	uint64_t waiting_bytes, unsent_bytes, unacknowledged_bytes; /* received and not read; not sent; sent and not acknowledged */
	uint64_t send_window_bytes, receive_window_bytes, congestion_window_bytes;
	uint64_t smoothed_rtt_us, retransmission_timeout_us;
	uint64_t sent_segments, retransmitted, retransmitted_by_rack, retransmitted_by_probe, retransmitted_by_timeout, duplicates;
};

struct program_page {
	uint32_t version, size_bytes;
	uint64_t finished;
	char name[PROGRAM_PAGE_NAME_BYTES]; /* of the program, ended by a zero */
	uint32_t tcp_listening, tcp_open, tcp_without_socket, udp_open; /* how many there are of each kind */
	uint32_t sockets, sockets_left_out; /* in the table; without room there */
	uint64_t counts[PROGRAM_COUNTS];
	struct program_page_socket socket[PROGRAM_PAGE_SOCKETS];
	uint64_t begun;
};

static_assert(sizeof(struct program_page_socket) == 168, "a socket has no holes");
static_assert(offsetof(struct program_page_socket, waiting_bytes) == 56, "words of a socket");
static_assert(offsetof(struct program_page, finished) == 8, "the number that ends");
static_assert(offsetof(struct program_page, counts) == 72, "counters");
static_assert(offsetof(struct program_page, socket) == 264, "sockets");
static_assert(sizeof(struct program_page) == 264 + PROGRAM_PAGE_SOCKETS * 168 + 8, "the page has no holes");

/* Their names in texts of JSON. */
extern const char *const program_count_names[PROGRAM_COUNTS];

/** @return the name of a state as netinet/tcp.h has it, without TCP_; NULL: there is no such state */
const char *program_state_name(uint8_t state);

/** Whether a copy of a page, of whoever, can be read: its version, and all its numbers. */
bool program_page_check(const struct program_page *page);

#endif
