/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the core share. */
#ifndef BW_STACK_INTERNAL_H
#define BW_STACK_INTERNAL_H

#include "stack.h"

#include "lwip/err.h"
#include "lwip/ip_addr.h"
#include "lwip/pbuf.h"

#include "hooks.h"

/* The smallest packet of IPv4 that routers may not break into fragments. */
enum { STACK_FRAGMENT_BYTES = 552 };

enum { US_PER_MS = 1000 };

struct tcp_pcb;
struct udp_pcb;

/* What came and waits to be read: a datagram, or a piece of a stream. */
struct received {
	struct received *next;
	struct pbuf *data;
	size_t room_bytes; /* behind the data: of pieces of a stream that were put together */
	struct stack_address from; /* of a datagram */
	struct stack_arrival arrival;
};

/* A socket; of what it holds only one kind's part is used. */
struct stack_socket {
	enum stack_family family;
	enum stack_type type;
	void *user;
	struct tcp_pcb *tcp; /* NULL: it never was or is no more connected */
	struct udp_pcb *udp;
	int error;           /* pending errno */
	int soft_error;      /* of TCP: what ICMP said since the peer was last heard */
	unsigned int told;   /* what was said last of it: STACK_READABLE, … */
	unsigned int news;   /* what of that was not so before, or is so anew */
	bool bound, only_ipv6, has_peer;
	struct stack_address peer, local; /* of TCP: those of its connection, also when that is over */
	struct stack_address source; /* of UDP: stack_set_source(); its family is 0 before */
	int send_bytes, receive_bytes, linger_s;
	bool send_bytes_set; /* by the program: else the buffer grows with what the path needs */
	int segment_bytes; /* of TCP: STACK_SEGMENT_BYTES as it was set; 0: no bound */

	/* TCP */
	bool listening, connecting, connected, peer_closed, shut_read, shut_write;
	bool ended; /* its FIN came: nothing that comes later is an error of reading */
	size_t first_offset; /* from there on the first piece is not yet read */
	struct stack_socket *accepted, *accepted_last; /* a listener's, linked by next */
	unsigned int accept_waiting, accept_most;      /* how many they are, also those whose connection is gone, and may be */
	struct stack_socket *next, *listener;

	struct received *first, *last;
	size_t waiting_bytes, held_bytes; /* held: the memory that it takes */
	struct stack_arrival arrival;     /* of what was read last */
};

extern struct stack_host stack_host_calls;
extern void *stack_host_argument;

uint64_t stack_now_us(void);
/** When the packet that is being handled has arrived. */
uint64_t stack_arrived_realtime_ns(void);
/** Hash words with a secret key, so that who does not have it cannot tell the result (SipHash-2-4). */
uint64_t stack_keyed_hash(const uint64_t key[2], const uint64_t *words, size_t count);
/** Count a datagram for which a socket had no room. */
void stack_count_udp_full(void);

/** Tell the host if what a socket can do has changed. */
void stack_socket_changed(struct stack_socket *sock);
/** The same where something has come to be read, be it more of the same. */
void stack_socket_received(struct stack_socket *sock);

/** @return -errno of an error of lwIP */
int stack_errno(err_t err);

/** Let what came wait to be read. @return whether there was memory */
bool stack_received_add(struct stack_socket *sock, struct pbuf *data);
void stack_received_drop_first(struct stack_socket *sock);
/** The memory that it takes: of what is small most is not data. */
size_t stack_received_held_bytes(const struct pbuf *data);

void stack_address_from_lwip(const ip_addr_t *ip, uint16_t port, struct stack_address *address);
void stack_address_to_lwip(const struct stack_address *address, ip_addr_t *ip);
/** @return whether the interface has it, or it is the wildcard */
bool stack_address_is_local(const struct stack_address *address);

/* Of sockets of either type: socket.c calls them. */
int stack_tcp_open(struct stack_socket *sock);
int stack_tcp_close(struct stack_socket *sock);
int stack_tcp_connect(struct stack_socket *sock, const ip_addr_t *ip, uint16_t port);
int64_t stack_tcp_send(struct stack_socket *sock, const void *data, size_t size_bytes, unsigned int flags);
int64_t stack_tcp_receive(struct stack_socket *sock, void *data, size_t size_bytes, unsigned int flags);
unsigned int stack_tcp_ready(const struct stack_socket *sock);
/** What the stack still holds of what was sent. */
size_t stack_tcp_held_bytes(const struct tcp_pcb *pcb);

/** Take in a packet if it is an error of ICMP. @return whether it was */
bool stack_icmp_input(const uint8_t *packet, size_t size_bytes);
/** Hear that the segment with this number did not reach its peer. @param err errno */
void stack_tcp_unreachable(const struct stack_address *local, const struct stack_address *remote, uint32_t sequence, int err);
/** Hear that it was too large for a link of its way. */
void stack_tcp_too_big(const struct stack_address *local, const struct stack_address *remote, uint32_t sequence, uint32_t mtu_bytes);
/** Hear that the interface takes packets of this size. */
void stack_tcp_mtu_changed(uint16_t mtu_bytes);
/** Hear that a datagram did not reach its peer: the socket that is connected to it has an error. */
void stack_udp_unreachable(const struct stack_address *local, const struct stack_address *remote, int err);

bool stack_tcp_port_in_use(uint16_t port);
bool stack_udp_port_in_use(uint16_t port);

/* What stack_each() takes, of a type. */
typedef void stack_take(void *argument, const struct stack_entry *entry);
void stack_tcp_each(stack_take *take, void *argument);
void stack_udp_each(stack_take *take, void *argument);

int stack_udp_open(struct stack_socket *sock);
int stack_udp_connect(struct stack_socket *sock, const struct stack_address *peer);
void stack_udp_close(struct stack_socket *sock);
/** @param from  NULL: the address that the socket sends from */
int64_t stack_udp_send(struct stack_socket *sock, const void *data, size_t size_bytes, const struct stack_address *from,
		       const struct stack_address *peer);
int64_t stack_udp_receive(struct stack_socket *sock, void *data, size_t size_bytes, unsigned int flags, struct stack_address *from);
unsigned int stack_udp_ready(const struct stack_socket *sock);

#endif
