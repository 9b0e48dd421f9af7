/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user-mode stack of one program: TCP and UDP over IPv4 and IPv6, as sockets that never block. It makes no call of the
 * operating system: packets are handed in, packets are handed out, and the caller tells the time, so that a packet path, a
 * simulator and scripts of packets drive the same code. One thread at a time may be in it. Results are 0 or more, or -errno, with
 * the errno that the kernel's sockets have.
 */
#ifndef BW_STACK_H
#define BW_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_socket;

enum stack_family { STACK_IPV4 = 4, STACK_IPV6 = 6 };
enum stack_type { STACK_TCP, STACK_UDP };

/* An end of a connection; of IPv4 the first four bytes count. Bytes of the address are in network order, the port is not. */
struct stack_address {
	enum stack_family family;
	uint8_t ip[16];
	uint16_t port;
};

/* What the stack asks of what it runs in. */
struct stack_host {
	/** Take an IP packet that is to leave. It is the caller's again when this returns. */
	void (*output)(void *argument, const uint8_t *packet, size_t size_bytes);
	/** Hear that stack_ready() of a socket may have changed. It may not call the stack but stack_ready(); NULL: nobody asks. */
	void (*changed)(void *argument, struct stack_socket *sock);
	/** Fill in bytes that nobody can guess: initial sequence numbers and ports come of them. */
	void (*random)(void *argument, void *bytes, size_t size_bytes);
};

/** Begin, once in a process; one that was forked may begin anew. @param now_us any instant; later ones count from it */
int stack_init(const struct stack_host *host, void *argument, uint64_t now_us);

/* What says how much a connection sends: the congestion window of CUBIC, or BBR's model of the path. */
enum stack_congestion { STACK_CUBIC, STACK_BBR };

/** Choose it for all connections, before the first one. Of a peer without SACK it stays STACK_CUBIC. */
void stack_set_congestion(enum stack_congestion control);

/**
 * Give the stack an address of the host's interface, or take it away: connections from it are reset.
 *
 * @param address  its port is not looked at
 * @return 0, -ENOSPC (there are sixteen of IPv4 and three of IPv6), -EADDRNOTAVAIL (it has no such address)
 */
int stack_add_address(const struct stack_address *address);
int stack_remove_address(const struct stack_address *address);

/** Set the interface's largest packet, 68..65535 bytes: connections send no larger one from now on. @return 0 or -EINVAL */
int stack_set_mtu(size_t mtu_bytes);

/** Tell the time: timers that are due run. It never goes back. */
void stack_advance_us(uint64_t now_us);

/** When a timer is due next, UINT64_MAX: none is. Nothing has to be advanced before that. */
uint64_t stack_next_us(void);

/** Hand in an IP packet that came. What is not sound is counted and dropped. */
void stack_input(const uint8_t *packet, size_t size_bytes);
/** Say when what is handed in from now on has arrived, of CLOCK_REALTIME; the stack only hands it on. 0: nobody knows. */
void stack_set_arrival(uint64_t realtime_ns);
/** What is handed in between the two has come together, and is acknowledged together, up to eight segments of a stream at a time. */
void stack_input_begin(void);
void stack_input_end(void);
/** Hear that a packet that was handed out cannot go: as if ICMP said so, which costs what is not yet connected. @param err errno */
void stack_unreachable(const uint8_t *packet, size_t size_bytes, int err);

/** @return a socket, or NULL: -errno stands in *err (-ENOMEM, -EAFNOSUPPORT) */
struct stack_socket *stack_open(enum stack_family family, enum stack_type type, int *err);
/** As close(2): what is not yet sent goes on to be sent, unless SO_LINGER says otherwise or data was not read (then a RST goes out). */
int stack_close(struct stack_socket *sock);

/** What the caller knows a socket by; NULL unless set. An accepted one has none yet. */
void stack_set_user(struct stack_socket *sock, void *user);
void *stack_user(const struct stack_socket *sock);

int stack_bind(struct stack_socket *sock, const struct stack_address *local);
int stack_listen(struct stack_socket *sock, int backlog);
/**
 * Say from which of the interface's addresses a socket of UDP that is bound to all of them sends, and is connected, from now on: the
 * host's routes decide for each peer.
 */
void stack_set_source(struct stack_socket *sock, const struct stack_address *source);
/** @return -EINPROGRESS (it is writable when it is connected, or has an error), or 0 of UDP */
int stack_connect(struct stack_socket *sock, const struct stack_address *peer);
/** @return a connected socket, or NULL: *err is -EAGAIN, -EINVAL (does not listen) */
struct stack_socket *stack_accept(struct stack_socket *sock, struct stack_address *peer, int *err);
enum stack_shut { STACK_SHUT_READ, STACK_SHUT_WRITE, STACK_SHUT_BOTH }; /* numbers as SHUT_RD, SHUT_WR, SHUT_RDWR */

int stack_shutdown(struct stack_socket *sock, int how);

enum {
	STACK_MORE = 1,     /* more follows at once: a segment that is not full may wait */
	STACK_PEEK = 2,     /* what is received stays */
	STACK_TRUNCATE = 4, /* of a datagram: return its whole length */
};

/**
 * @param peer  of UDP; NULL: the connected one
 * @return bytes that were taken (of TCP maybe fewer), -EAGAIN, -EPIPE, -ECONNRESET, -EMSGSIZE, -EDESTADDRREQ, …
 */
int64_t stack_send(struct stack_socket *sock, const void *data, size_t size_bytes, unsigned int flags,
		   const struct stack_address *peer);
/** Send a datagram as stack_send() does, from this address of the interface. @return -EINVAL: it is none, or not of the peer's family */
int64_t stack_send_from(struct stack_socket *sock, const void *data, size_t size_bytes, const struct stack_address *from,
			const struct stack_address *peer);
/** @return bytes, 0 (end of a stream), -EAGAIN, -ECONNRESET, -ECONNREFUSED, -ETIMEDOUT, … */
int64_t stack_receive(struct stack_socket *sock, void *data, size_t size_bytes, unsigned int flags, struct stack_address *from);

/* How what was received had come. */
struct stack_arrival {
	struct stack_address to; /* of a datagram: the address that it was sent to */
	uint64_t realtime_ns;    /* as stack_set_arrival() said: of a stream that of the last piece */
};

/** Of what stack_receive() has handed over last. */
void stack_arrival(const struct stack_socket *sock, struct stack_arrival *arrival);

enum {
	STACK_READABLE = 1, /* data, a connection to accept, the end of the stream, or an error */
	STACK_WRITABLE = 2,
	STACK_ERROR = 4,
	STACK_PEER_CLOSED = 8, /* the peer sends no more */
	STACK_HUNG_UP = 16,    /* both ways are closed */
};

/** What a socket can do now. */
unsigned int stack_ready(const struct stack_socket *sock);
/** What of stack_ready() is news when the host hears of a change: it is so since then, or more has come. For those who want edges. */
unsigned int stack_news(const struct stack_socket *sock);
/** How many bytes can be read: of a stream; of UDP those of the first datagram. */
size_t stack_waiting_bytes(const struct stack_socket *sock);
/** Take the error that is pending: 0 or an errno (not negative). */
int stack_take_error(struct stack_socket *sock);
/** Take what stack_connect() has come to: 0, or -errno, after which the socket is as one that was never connected. */
int stack_take_connected(struct stack_socket *sock);
/** Take what was said of packets that did not arrive while their connection goes on, since its peer was last heard; SO_ERROR hands it out, too. */
int stack_take_soft_error(struct stack_socket *sock);

enum stack_option {
	STACK_NO_DELAY,          /* 0, 1 */
	STACK_REUSE_ADDRESS,     /* 0, 1 */
	STACK_ONLY_IPV6,         /* 0, 1 */
	STACK_KEEP_ALIVE,        /* 0, 1 */
	STACK_KEEP_IDLE_S,       /* seconds of silence before the first probe */
	STACK_KEEP_INTERVAL_S,
	STACK_KEEP_COUNT,
	STACK_LINGER_S,          /* -1: off; 0: close resets */
	STACK_SEND_BYTES,        /* of what was sent and is not acknowledged, or waits to be sent */
	STACK_RECEIVE_BYTES,     /* what datagrams that wait may take; of TCP the window is fixed */
	STACK_USER_TIMEOUT_MS,   /* how long data may stay unacknowledged before the connection ends; 0: 120 s */
	STACK_SEGMENT_BYTES,     /* largest segment that is sent, and announced, of connections that begin later; 0: no bound; read: that of this one */
	STACK_TYPE_OF_SERVICE,   /* 0..255, of IPv4; the traffic class of IPv6 */
};

int stack_set(struct stack_socket *sock, enum stack_option option, int value);
int stack_get(const struct stack_socket *sock, enum stack_option option, int *value);

int stack_local(const struct stack_socket *sock, struct stack_address *local);
int stack_peer(const struct stack_socket *sock, struct stack_address *peer);

/** What a connection is doing, for bw-netstat and for tests. */
struct stack_info {
	int state;                    /* as TCP_ESTABLISHED … of netinet/tcp.h */
	uint32_t send_unacknowledged; /* sequence numbers: SND.UNA, SND.NXT, RCV.NXT */
	uint32_t send_next, receive_next;
	uint64_t congestion_window_bytes, send_window_bytes, receive_window_bytes;
	uint64_t unsent_bytes, unacknowledged_bytes;
	uint64_t in_flight_bytes; /* of those, what is neither lost nor known to have arrived */
	uint64_t smoothed_rtt_us, retransmission_timeout_us;
	uint64_t sent_segments, retransmitted, retransmitted_by_rack, retransmitted_by_probe, retransmitted_by_timeout, duplicates;
	uint32_t segment_bytes;
};

int stack_info(const struct stack_socket *sock, struct stack_info *info);

/* A socket, or a connection whose socket is closed or that no socket has yet. */
struct stack_entry {
	enum stack_type type;
	struct stack_address local, peer; /* peer: of what has none its port is 0 */
	const struct stack_socket *sock;  /* NULL: none */
	struct stack_info info;           /* of UDP the state alone: TCP_ESTABLISHED (it has a peer) or TCP_CLOSE */
	size_t waiting_bytes;             /* all that was received and not read */
	unsigned int accept_waiting, accept_most; /* of a listener: connections that wait, and how many may */
};

/** Hand over each socket and each connection that there is; `take` may not call the stack but for stack_user(). */
void stack_each(void (*take)(void *argument, const struct stack_entry *entry), void *argument);

/** Whether a socket or a connection has the port, also one whose socket is closed: what it sent may still be on its way. */
bool stack_port_in_use(enum stack_type type, uint16_t port);
/** How many connections whose sockets are closed still have something to send, or wait for the peer to acknowledge it. */
unsigned int stack_unfinished(void);
/** How many of them only wait for the peer to close, too. */
unsigned int stack_half_closed(void);

/* Of the whole stack, since it began. */
struct stack_counts {
	uint64_t packets_in, packets_out;
	uint64_t ip_malformed, ip_checksum;     /* packets that were dropped, and why */
	uint64_t tcp_in, tcp_out, tcp_malformed, tcp_checksum, tcp_no_memory;
	uint64_t udp_in, udp_out, udp_malformed, udp_checksum, udp_no_port;
	uint64_t udp_full;                      /* datagrams for which a socket had no room */
	/* Segments of TCP that were sent again, and what found them lost; and those that came to us twice. */
	uint64_t retransmitted, retransmitted_by_rack, retransmitted_by_probe, retransmitted_by_timeout, duplicates;
};

void stack_counts(struct stack_counts *counts);

#endif
