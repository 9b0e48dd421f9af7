/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librtdip: ports of RTDiP for a program, by calls as those of sockets. Results are 0 or more, or -errno.
 *
 * A handle is one thread's, and of the process that opened it: a forked child leaves it alone, but for rtdip_close(), and has it
 * closed before it runs on by itself, else the ports stay taken when its parent has died. Its ports are given by the service of
 * an interface (`bw-rtdip serve`); they are free again when the handle is closed or its process dies, however it does. A frame is
 * handled by the receiving process, when it asks, at the priority that it has then. Of all frames that have come for a handle's ports those of the highest priority come first; of one
 * priority and port in the order in which they came. RTDiP does not repeat what is lost, but every loss is counted somewhere:
 * rtdip_counts(), `bw-rtdip show`.
 */
#ifndef RTDIP_H
#define RTDIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

#define RTDIP_PRIVILEGED_MAX 1023 /* ports up to it are given to root alone */
#define RTDIP_EPHEMERAL_MIN 49152 /* ports from it on are given to who asks for any */
#define RTDIP_RING_MIN_BYTES 4096
#define RTDIP_RING_MAX_BYTES (64 * 1024 * 1024)
#define RTDIP_USER_RINGS_BYTES (UINT64_C(128) * 1024 * 1024) /* of all rings of a user other than root */
#define RTDIP_RING_BYTES (256 * 1024) /* where 0 is asked for */
#define RTDIP_HANDLE_PORTS_MAX 64

struct rtdip;

struct rtdip_address {
	uint8_t mac[RTDIP_MAC_BYTES];
	uint16_t port;
};

struct rtdip_message {
	struct rtdip_address from;
	uint16_t to_port;
	enum rtdip_priority priority;
	uint32_t sequence;
	int64_t received_monotonic_ns; /* when the XDP program saw it, CLOCK_MONOTONIC */
	size_t size_bytes;             /* of the data; more than there was room for: the rest is lost */
};

struct rtdip_counts {
	uint64_t received, sent;
	uint64_t unheard; /* dropped in the handle: more of one priority had come than a port's ring holds, or its port was given back */
	uint64_t missing; /* sequence numbers of a sender that did not come, or were unheard, while it was among the 64 heard last */
};

enum {
	RTDIP_BYPASS_QDISC = 1, /* frames that are sent go past the queueing discipline */
};

/**
 * Open a handle to the service of an interface.
 *
 * @param socket_path  of the service; NULL: /run/benchwright/rtdip.sock
 * @param flags        RTDIP_BYPASS_QDISC, or 0
 * @param handle       receives it; NULL on failure
 * @return 0 (rtdip_close frees it), -ENOENT or -ECONNREFUSED (no service), -EACCES, -EPROTO (a service of another
 *         version, which `bw-rtdip show` names), -EDQUOT (the user has 240 handles), -ENOSPC (no handle is left), -ENOMEM
 */
int rtdip_open(const char *socket_path, unsigned int flags, struct rtdip **handle);
/** Close a handle, once; NULL does no harm. */
void rtdip_close(struct rtdip *handle);

/**
 * Take a port.
 *
 * @param port        1..65535; 0: any that is free
 * @param ring_bytes  a power of two, RTDIP_RING_MIN_BYTES..RTDIP_RING_MAX_BYTES; 0: RTDIP_RING_BYTES
 * @return the port, -EADDRINUSE, -EACCES (a privileged one), -EINVAL, -EMFILE (RTDIP_HANDLE_PORTS_MAX), -EBUSY (read what has come
 *         first), -ENOBUFS (RTDIP_USER_RINGS_BYTES), -EDQUOT (the user has 512 ports), -ENOSPC (no port is left),
 *         -ENOMEM, -EPIPE (no service)
 */
int rtdip_bind(struct rtdip *handle, uint16_t port, uint32_t ring_bytes);

/** Give a port back. What lies in its ring is unheard; what was sorted by priority before can still be taken. */
int rtdip_unbind(struct rtdip *handle, uint16_t port);

/**
 * Send one frame.
 *
 * @param from_port   a port of the handle, by which the receiver may answer; 0: none
 * @param data        at most rtdip_data_max_bytes()
 * @return size_bytes; -EMSGSIZE, -EINVAL (not a port of the handle), -EAGAIN (the card's queue is full), -ENETDOWN, …
 */
int64_t rtdip_send(struct rtdip *handle, const struct rtdip_address *to, uint16_t from_port, enum rtdip_priority priority,
		   const void *data, size_t size_bytes);

/** Return how many bytes of data a frame takes: the MTU that the interface had when its service began, less the header. */
uint32_t rtdip_data_max_bytes(const struct rtdip *handle);

/**
 * Take the frame that comes first.
 *
 * @param timeout_ns  0: do not wait; negative: without end
 * @return 0; -ETIMEDOUT, -EINTR, -EPIPE: the service has ended (what had come before it is given first; who does not wait hears of
 *         it within a millisecond)
 */
int rtdip_receive(struct rtdip *handle, struct rtdip_message *message, void *data, size_t room_bytes, int64_t timeout_ns);

/**
 * A descriptor that poll() and epoll call readable while frames may be there, or the service has ended; read until
 * rtdip_receive() has none, and watch it no more after -EPIPE. The caller closes it, before the handle.
 */
int rtdip_descriptor(const struct rtdip *handle);

/** A descriptor that is writable while frames can be sent; the caller closes it. */
int rtdip_sending_descriptor(const struct rtdip *handle);

/**
 * Ask the kernel for the Ethernet address of a neighbour. Where it does not know it yet it begins to ask the network.
 *
 * @param ipv4  in host byte order
 * @return 0, -EAGAIN: not known yet, or -errno
 */
int rtdip_resolve(uint32_t ipv4, uint8_t mac[RTDIP_MAC_BYTES]);

/** Whether the service has ended: nothing has come for the handle's ports since, whatever other service is there now. */
bool rtdip_has_ended(const struct rtdip *handle);

void rtdip_counts(const struct rtdip *handle, struct rtdip_counts *counts);

#endif
