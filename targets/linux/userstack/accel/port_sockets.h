/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of the program, and which stack has each. Behind every descriptor is a socket of the kernel: it holds the port in the
 * kernel's stack, so that no other program can have it, checks what the program may do, and carries what the user-mode stack does
 * not: loopback, other interfaces, what --only leaves out.
 *
 * Functions are called with the lock (port_wait.h) and return 0 or more, or -errno.
 */
#ifndef BW_ACCEL_SOCKETS_H
#define BW_ACCEL_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/stack.h"

struct watch;

enum socket_owner {
	OWNER_UNDECIDED, /* so far only the kernel's socket */
	OWNER_KERNEL,    /* the kernel's stack has it for good */
	OWNER_STACK,     /* the user-mode stack has it, and perhaps (both) the kernel's, for this host itself, groups and other interfaces */
	/* Of a process that was forked from one with a stack: port_parent.h. */
	OWNER_PARENT,    /* the parent's stack has it, and nothing was asked of it here yet */
	OWNER_RELAYED,   /* a local socket, whose other end the parent relays to the connection */
	OWNER_HANDED,    /* a local socket, by which the parent says that a connection of its listener waits */
};

struct open_socket {
	unsigned int references; /* descriptors that mean it, and calls that are in it */
	int fd;                  /* one of its descriptors */
	int domain, type, protocol;
	enum socket_owner owner;
	bool both, nonblocking, listens;
	bool connects;              /* connect() has begun, and not said what came of it */
	bool relayed, relay_due;    /* a child of this process uses it; it has changed since its relays were last looked at */
	int backlog, kept;          /* kept: of OWNER_HANDED, the kernel's socket behind the local one */
	struct stack_address local, peer; /* of OWNER_RELAYED */
	bool unasked;               /* of OWNER_RELAYED: it has only sent so far, and what comes stays with the parent */
	int asked_as, channel;      /* of a parent's: by which descriptor it knows the socket, and over what it is asked */
	struct stack_socket *stack; /* of OWNER_STACK */
	uint16_t port;              /* that the service has given; 0: none */
	bool unfit;                 /* it has an option that the user-mode stack lacks: the kernel's has it */
	unsigned int tells;         /* beside what is received: port_control.h */
	uint32_t options_set;       /* one bit each: port_options.c */
	int send_bytes, receive_bytes, segment_bytes; /* SO_SNDBUF, SO_RCVBUF, TCP_MAXSEG as the program has set them; 0: it has not */
	uint64_t receive_us, send_us; /* SO_RCVTIMEO, SO_SNDTIMEO; 0: none */
	struct stack_address sent_to; /* of UDP: where the last datagram went, and by which stack */
	bool sent_by_kernel;
	struct watch *watches;        /* of epolls: port_epoll.h */
};

/** @return what a descriptor means, or NULL: nothing that this library knows; may be asked without the lock as a hint */
struct open_socket *sockets_find(int fd);
/** @return the next descriptor behind `fd` that means a socket here, or -1; -1 begins */
int sockets_next(int fd);
/** Note a new socket of the kernel. @return 0 or -errno */
int sockets_add(int fd, int domain, int type, int protocol, bool nonblocking);
/** Note that another descriptor means the same. */
int sockets_share(struct open_socket *sock, int fd);
/** A descriptor has been closed by the program; the kernel's is closed, too. @return 0 or -errno */
int sockets_close(int fd);
/** Forget a descriptor that means something else from now on; what it meant is closed, the kernel's descriptor stays. */
void sockets_forget(int fd);
void sockets_hold(struct open_socket *sock);
void sockets_release(struct open_socket *sock);
/** The same for struct wait: the thread of the call that holds it is cancelled. */
void sockets_abandon(void *sock);
/** The stack's part of it ends, and its port is given back. */
void sockets_leave_stack(struct open_socket *sock);
/** All of them that the user-mode stack has are closed: the program ends. */
void sockets_close_all(void);

/** Whether the user-mode stack has it, here or in the parent; NULL: no. */
static inline bool sockets_is_of_stack(const struct open_socket *sock)
{
	return sock && (sock->owner == OWNER_STACK || sock->owner == OWNER_PARENT);
}

/** POLLIN … of poll(2) that the user-mode stack says of it now; of OWNER_STACK only. */
short sockets_ready(const struct open_socket *sock);
/** What of that is news, when it has changed. */
short sockets_news(const struct open_socket *sock);
/** Whether it is no connection: its port is all that it has. */
static inline bool sockets_is_without_connection(const struct open_socket *sock)
{
	return sock->listens || sock->type == SOCK_DGRAM;
}

/** Whether its kernel's socket has a part in what can be read of it. */
static inline bool sockets_kernel_takes_part(const struct open_socket *sock)
{
	return sock->owner != OWNER_STACK || sock->both; /* a local socket is the kernel's, too */
}

/* For a fork: port_children.h, port_parent.h. */
unsigned int sockets_count_of_stack(void);
/** Call for each descriptor of a socket that the user-mode stack has. */
void sockets_each_of_stack(void (*each)(int fd, struct open_socket *sock, void *argument), void *argument);
/** In a process that was forked: what the stack has is the parent's, asked over `channel`. @return whether some of it is without a connection */
bool sockets_leave_to_parent(int channel);
/** Call for each descriptor of a socket that is a parent's, and asks over `channel`. */
void sockets_each_of_parent(int channel, void (*each)(struct open_socket *sock, void *argument), void *argument);
/** @return a socket without a descriptor, referred to once, of a connection that was accepted; or NULL */
struct open_socket *sockets_of_connection(const struct open_socket *listener, struct stack_socket *stack);
/** Put a local socket in the place of each of its descriptors. @param local_socket  closed here @return 0 or -errno */
int sockets_become(struct open_socket *sock, int local_socket, const struct stack_address *local, const struct stack_address *peer,
		   enum socket_owner owner);
/** Note a connection that the parent has handed over. @param local  NULL: it is the kernel's @return the descriptor or -errno */
int sockets_add_handed(const struct open_socket *listener, int fd, const struct stack_address *local, const struct stack_address *peer,
		       struct sockaddr *address, socklen_t *length, int flags);

/** An instant so long from now, 0: none; as struct wait has it. */
uint64_t sockets_until_us(uint64_t timeout_us);

#endif
