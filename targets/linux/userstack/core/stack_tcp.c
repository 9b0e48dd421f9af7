/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of TCP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "congestion.h"
#include "recovery.h"
#include "stack_internal.h"

#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"

enum { WRITE_MAX_BYTES = 32768, HALF_OPEN_LEAST = 64, GATHER_BYTES = 16384, GATHER_FROM_BYTES = 65536 };

static void release(struct stack_socket *sock)
{
	while (sock->first)
		stack_received_drop_first(sock);
	free(sock);
}

/* Part a socket from its connection: nothing more is heard of that. */
static struct tcp_pcb *part(struct stack_socket *sock)
{
	struct tcp_pcb *pcb = sock->tcp;

	sock->tcp = NULL;
	if (pcb) {
		tcp_arg(pcb, NULL);
		if (pcb->state == LISTEN) {
			tcp_accept(pcb, NULL);
		} else {
			tcp_recv(pcb, NULL);
			tcp_sent(pcb, NULL);
			tcp_err(pcb, NULL);
		}
	}
	return pcb;
}

/* Begin a piece that others are copied into. Return whether there was memory. */
static bool gather_begin(struct stack_socket *sock, u16_t least_bytes)
{
	u16_t room_bytes = least_bytes < GATHER_BYTES ? GATHER_BYTES : least_bytes;
	struct pbuf *empty = pbuf_alloc(PBUF_RAW, room_bytes, PBUF_RAM);

	if (!empty)
		return false;
	empty->len = empty->tot_len = 0;
	if (!stack_received_add(sock, empty)) {
		pbuf_free(empty);
		return false;
	}
	sock->last->room_bytes = room_bytes;
	return true;
}

/*
 * Copy a piece of a stream to others if the memory of all is most of all not data: of single bytes a peer would make a window cost many
 * times its size. Return whether it is there.
 */
static bool gather(struct stack_socket *sock, struct pbuf *data)
{
	const u16_t length = data->tot_len;
	size_t held_bytes = sock->held_bytes + stack_received_held_bytes(data);
	struct received *last;

	if ((!sock->last || length > sock->last->room_bytes) &&
	    (held_bytes < 2 * (sock->waiting_bytes + length) + GATHER_FROM_BYTES || !gather_begin(sock, length)))
		return false;
	last = sock->last;
	pbuf_copy_partial(data, (uint8_t *)last->data->payload + last->data->len, length, 0);
	last->data->len = last->data->tot_len = (u16_t)(last->data->len + length);
	last->arrival.realtime_ns = stack_arrived_realtime_ns();
	last->room_bytes -= length;
	sock->waiting_bytes += length;
	sock->held_bytes += length;
	pbuf_free(data);
	return true;
}

/* Data came, or (NULL) the end of it. */
static err_t heard(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t err)
{
	struct stack_socket *sock = argument;

	LWIP_UNUSED_ARG(pcb);
	LWIP_UNUSED_ARG(err);
	sock->soft_error = 0;
	if (!data) {
		sock->peer_closed = sock->ended = true;
	} else if (!gather(sock, data) && !stack_received_add(sock, data)) {
		return ERR_MEM; /* the stack offers it again */
	}
	stack_socket_received(sock);
	return ERR_OK;
}

static err_t sent(void *argument, struct tcp_pcb *pcb, u16_t size_bytes)
{
	struct stack_socket *sock = argument;

	LWIP_UNUSED_ARG(pcb);
	LWIP_UNUSED_ARG(size_bytes);
	sock->soft_error = 0;
	stack_socket_changed(sock);
	return ERR_OK;
}

/* The connection is over, and its control block gone. */
static void failed(void *argument, err_t err)
{
	struct stack_socket *sock = argument;

	sock->tcp = NULL;
	if (err == ERR_CLSD)
		; /* both ends have closed, and nothing was lost */
	else if (err == ERR_RST)
		sock->error = sock->connecting ? ECONNREFUSED : sock->ended && !sock->shut_write ? EPIPE : ECONNRESET;
	else
		sock->error = err != ERR_ABRT ? -stack_errno(err) : sock->soft_error ? stack_take_soft_error(sock) : ETIMEDOUT;
	sock->connecting = sock->connected = false;
	sock->peer_closed = true;
	stack_socket_received(sock);
}

/* It is connected, to these ends for good. */
static void note_ends(struct stack_socket *sock, const struct tcp_pcb *pcb)
{
	sock->connected = true;
	stack_address_from_lwip(&pcb->local_ip, pcb->local_port, &sock->local);
	stack_address_from_lwip(&pcb->remote_ip, pcb->remote_port, &sock->peer);
}

static err_t connected(void *argument, struct tcp_pcb *pcb, err_t err)
{
	struct stack_socket *sock = argument;

	LWIP_UNUSED_ARG(err);
	sock->connecting = false;
	note_ends(sock, pcb);
	stack_socket_changed(sock);
	return ERR_OK;
}

static void adopt(struct stack_socket *sock, struct tcp_pcb *pcb)
{
	sock->tcp = pcb;
	tcp_arg(pcb, sock);
	tcp_recv(pcb, heard);
	tcp_sent(pcb, sent);
	tcp_err(pcb, failed);
}

int stack_tcp_open(struct stack_socket *sock)
{
	struct tcp_pcb *pcb = tcp_new_ip_type(sock->family == STACK_IPV4 ? IPADDR_TYPE_V4 : IPADDR_TYPE_ANY);

	if (!pcb)
		return -ENOMEM;
	pcb->mss_most = (u16_t)sock->segment_bytes;
	adopt(sock, pcb);
	return 0;
}

/* A connection came to a listener. It waits to be accepted. */
static err_t arrived(void *argument, struct tcp_pcb *pcb, err_t err)
{
	struct stack_socket *listener = argument, *sock;

	if (err != ERR_OK || !pcb || !listener)
		return ERR_VAL;
	sock = calloc(1, sizeof(*sock));
	if (!sock)
		return ERR_MEM;
	sock->family = listener->family;
	sock->type = STACK_TCP;
	sock->send_bytes = listener->send_bytes;
	sock->send_bytes_set = listener->send_bytes_set;
	sock->receive_bytes = listener->receive_bytes;
	sock->linger_s = listener->linger_s;
	sock->segment_bytes = listener->segment_bytes;
	sock->bound = true;
	sock->listener = listener;
	note_ends(sock, pcb);
	adopt(sock, pcb);
	listener->accept_waiting++;
	if (listener->accepted_last)
		listener->accepted_last->next = sock;
	else
		listener->accepted = sock;
	listener->accepted_last = sock;
	stack_socket_received(listener);
	return ERR_OK;
}

int stack_accept_queue_is_full(const void *listener)
{
	const struct stack_socket *sock = listener;

	return sock && sock->accept_waiting > sock->accept_most; /* one more than it says, as with the kernel */
}

int stack_listen(struct stack_socket *sock, int backlog)
{
	struct tcp_pcb *pcb;
	u8_t half_open;
	err_t err;

	if (sock->type != STACK_TCP)
		return -EOPNOTSUPP;
	if (backlog < 0)
		backlog = 0;
	if (backlog > UINT8_MAX)
		backlog = UINT8_MAX;
	/* Peers that connect at once do not push each other out, however few may wait. */
	half_open = (u8_t)(backlog < HALF_OPEN_LEAST ? HALF_OPEN_LEAST : backlog);
	if (sock->listening) {
		sock->accept_most = (unsigned int)backlog;
		((struct tcp_pcb_listen *)sock->tcp)->backlog = half_open;
		return 0;
	}
	if (!sock->tcp || sock->connecting || sock->connected)
		return -EINVAL;
	if (!sock->bound) {
		err = tcp_bind(sock->tcp, sock->family == STACK_IPV4 ? IP4_ADDR_ANY : IP_ANY_TYPE, 0);
		if (err != ERR_OK)
			return stack_errno(err);
		sock->bound = true;
	}
	tcp_err(sock->tcp, NULL);
	pcb = tcp_listen_with_backlog_and_err(sock->tcp, half_open, &err);
	if (!pcb) {
		tcp_err(sock->tcp, failed);
		return stack_errno(err);
	}
	sock->tcp = pcb;
	sock->listening = true;
	sock->accept_most = (unsigned int)backlog;
	tcp_arg(pcb, sock);
	tcp_accept(pcb, arrived);
	return 0;
}

struct stack_socket *stack_accept(struct stack_socket *sock, struct stack_address *peer, int *err)
{
	struct stack_socket *first = sock->accepted;

	*err = sock->listening ? -EAGAIN : -EINVAL;
	if (!first)
		return NULL;
	sock->accepted = first->next;
	if (!sock->accepted)
		sock->accepted_last = NULL;
	first->next = first->listener = NULL;
	sock->accept_waiting--;
	if (peer)
		*peer = first->peer; /* also of a connection that is over */
	stack_socket_changed(sock);
	*err = 0;
	return first;
}

int stack_tcp_connect(struct stack_socket *sock, const ip_addr_t *ip, uint16_t port)
{
	err_t err;

	if (sock->listening)
		return -EISCONN;
	if (sock->connecting)
		return -EALREADY;
	if (sock->connected || sock->local.port) /* also when it is over, as with the kernel */
		return -EISCONN;
	if (!sock->tcp) {
		/* As with the kernel a socket whose connection failed may try again. */
		int opened = stack_tcp_open(sock);

		if (opened)
			return opened;
		sock->peer_closed = sock->ended = sock->bound = false;
	}
	err = tcp_connect(sock->tcp, ip, port, connected);
	if (err != ERR_OK)
		return err == ERR_USE ? -EADDRNOTAVAIL : stack_errno(err); /* another connection has both ends */
	sock->connecting = true;
	sock->bound = true;
	return -EINPROGRESS;
}

int stack_take_connected(struct stack_socket *sock)
{
	struct stack_address peer;
	int err = stack_take_error(sock);

	err = err ? -err : stack_peer(sock, &peer) ? -ECONNABORTED : 0;
	if (err)
		sock->peer_closed = sock->ended = false;
	return err;
}

static size_t send_limit_bytes(const struct stack_socket *sock)
{
	size_t set = (size_t)sock->send_bytes, wanted = congestion_of(sock->tcp)->buffer_bytes(sock->tcp);

	return sock->send_bytes_set || wanted < set ? set : LWIP_MIN(wanted, TCP_SND_BUF);
}

static size_t room_bytes(const struct stack_socket *sock)
{
	size_t held = stack_tcp_held_bytes(sock->tcp), limit = send_limit_bytes(sock);

	if (tcp_sndqueuelen(sock->tcp) >= TCP_SND_QUEUELEN)
		return 0;
	return held < limit ? limit - held : 0;
}

/* What is not full waits for more, also where NO_DELAY is set. */
static void send_full_segments(struct tcp_pcb *pcb)
{
	const tcpflags_t no_delay = pcb->flags & TF_NODELAY;

	if (!pcb->unsent || (!pcb->unsent->next && pcb->unsent->len < pcb->mss))
		return;
	tcp_clear_flags(pcb, TF_NODELAY);
	tcp_output(pcb);
	tcp_set_flags(pcb, no_delay);
}

int64_t stack_tcp_send(struct stack_socket *sock, const void *data, size_t size_bytes, unsigned int flags)
{
	const uint8_t *bytes = data;
	size_t taken = 0;

	if (sock->error)
		return -stack_take_error(sock);
	if (sock->shut_write || (!sock->tcp && sock->peer_closed))
		return -EPIPE;
	if (sock->connecting)
		return -EAGAIN;
	if (!sock->connected || !sock->tcp)
		return -EPIPE;
	while (taken < size_bytes) {
		size_t room = room_bytes(sock), left = size_bytes - taken, part_bytes = left < room ? left : room;
		bool more;

		if (part_bytes > WRITE_MAX_BYTES)
			part_bytes = WRITE_MAX_BYTES;
		if (!part_bytes)
			break;
		more = part_bytes < left || (flags & STACK_MORE);
		if (tcp_write(sock->tcp, bytes + taken, (u16_t)part_bytes, TCP_WRITE_FLAG_COPY | (more ? TCP_WRITE_FLAG_MORE : 0)) != ERR_OK)
			break;
		taken += part_bytes;
	}
	sock->tcp->recovery.program_waits = taken < size_bytes;
	/* Who waits until there is room again sends no more before something has gone. */
	if (taken && (!(flags & STACK_MORE) || taken < size_bytes || !(stack_tcp_ready(sock) & STACK_WRITABLE)))
		tcp_output(sock->tcp);
	else if (taken)
		send_full_segments(sock->tcp);
	stack_socket_changed(sock);
	return taken || !size_bytes ? (int64_t)taken : -EAGAIN;
}

/* Take bytes off the front of what was received; the peer hears that there is room again. */
static void take_off(struct stack_socket *sock, size_t size_bytes)
{
	size_t left = size_bytes;

	sock->first_offset += size_bytes;
	while (sock->first && sock->first_offset >= sock->first->data->tot_len) {
		sock->first_offset -= sock->first->data->tot_len;
		stack_received_drop_first(sock);
	}
	while (sock->tcp && left) {
		u16_t piece = (u16_t)(left < UINT16_MAX ? left : UINT16_MAX);

		tcp_recved(sock->tcp, piece);
		left -= piece;
	}
}

int64_t stack_tcp_receive(struct stack_socket *sock, void *data, size_t size_bytes, unsigned int flags)
{
	const struct received *each = sock->first;
	size_t copied = 0, offset = sock->first_offset;

	if (sock->listening)
		return -ENOTCONN;
	for (; each && copied < size_bytes; each = each->next) {
		size_t here = each->data->tot_len - offset;

		if (here > size_bytes - copied)
			here = size_bytes - copied;
		pbuf_copy_partial(each->data, (uint8_t *)data + copied, (u16_t)here, (u16_t)offset);
		copied += here;
		offset = 0;
		sock->arrival = each->arrival;
	}
	if (copied) {
		if (!(flags & STACK_PEEK)) {
			take_off(sock, copied);
			stack_socket_changed(sock);
		}
		return (int64_t)copied;
	}
	if (sock->first) /* nothing was asked for */
		return 0;
	if (sock->ended) /* as by the kernel an error stays for who sends, or asks for it */
		return 0;
	if (sock->error)
		return -stack_take_error(sock);
	if (sock->peer_closed || sock->shut_read)
		return 0;
	if (sock->connecting)
		return -EAGAIN;
	return sock->connected ? -EAGAIN : -ENOTCONN;
}

/* End what connect() has begun: it can begin anew. */
static void cancel(struct stack_socket *sock)
{
	tcp_abandon(part(sock), 0);
	sock->connecting = false;
	sock->error = ECONNRESET;
	stack_socket_changed(sock);
}

int stack_shutdown(struct stack_socket *sock, int how)
{
	struct stack_address peer;

	if (how != STACK_SHUT_READ && how != STACK_SHUT_WRITE && how != STACK_SHUT_BOTH)
		return -EINVAL;
	if (sock->connecting) {
		cancel(sock);
		return 0;
	}
	if (stack_peer(sock, &peer))
		return -ENOTCONN;
	if (how != STACK_SHUT_WRITE)
		sock->shut_read = true;
	if (how != STACK_SHUT_READ && !sock->shut_write) {
		sock->shut_write = true;
		if (sock->type == STACK_TCP)
			tcp_shutdown(sock->tcp, 0, 1);
	}
	stack_socket_changed(sock);
	return 0;
}

int stack_tcp_close(struct stack_socket *sock)
{
	bool unread = sock->first != NULL;
	struct tcp_pcb *pcb;

	while (sock->accepted) {
		struct stack_socket *first = sock->accepted;

		sock->accepted = first->next;
		pcb = part(first);
		if (pcb)
			tcp_abort(pcb);
		release(first);
	}
	pcb = part(sock);
	if (pcb) {
		if (!sock->listening && (unread || (sock->linger_s == 0 && sock->connected)))
			tcp_abort(pcb);
		else
			tcp_close(pcb);
	}
	release(sock);
	return 0;
}

unsigned int stack_tcp_ready(const struct stack_socket *sock)
{
	unsigned int ready = 0;

	if (sock->listening)
		return sock->accepted ? STACK_READABLE : 0;
	if (sock->error)
		ready |= STACK_ERROR; /* its connection is over, which says the rest */
	if (sock->first || sock->peer_closed || sock->shut_read)
		ready |= STACK_READABLE;
	if (sock->peer_closed || sock->shut_read)
		ready |= STACK_PEER_CLOSED;
	if (!sock->tcp && !sock->connecting)
		ready |= STACK_HUNG_UP | STACK_WRITABLE;
	else if ((sock->peer_closed || sock->shut_read) && sock->shut_write)
		ready |= STACK_HUNG_UP;
	if (sock->shut_write || (sock->connected && sock->tcp && room_bytes(sock) && room_bytes(sock) >= stack_tcp_held_bytes(sock->tcp) / 2))
		ready |= STACK_WRITABLE;
	else if (sock->tcp && !sock->connected && !sock->connecting)
		ready |= STACK_HUNG_UP | STACK_WRITABLE; /* as the kernel says of one that was never connected */
	return ready;
}
