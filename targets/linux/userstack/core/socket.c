/* SPDX-License-Identifier: Apache-2.0 */
/* What sockets of both types have in common. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "stack_internal.h"

#include "lwip/ip.h"
#include "lwip/tcp.h"
#include "lwip/udp.h"

enum {
	SEND_BYTES = 1024 * 1024,
	UDP_RECEIVE_BYTES = 1024 * 1024,
	BYTES_MIN = 4096,
	MS_PER_S = 1000,
	SEGMENT_MIN_BYTES = 88,
	SEGMENT_MAX_BYTES = 32767,
	KEEP_MAX_S = 32767,
	KEEP_MAX_COUNT = 127,
};

struct stack_socket *stack_open(enum stack_family family, enum stack_type type, int *err)
{
	struct stack_socket *sock = NULL;

	*err = -EAFNOSUPPORT;
	if (family != STACK_IPV4 && family != STACK_IPV6)
		return NULL;
	*err = -ENOMEM;
	sock = calloc(1, sizeof(*sock));
	if (!sock)
		return NULL;
	sock->family = family;
	sock->type = type;
	sock->send_bytes = SEND_BYTES;
	sock->receive_bytes = type == STACK_UDP ? UDP_RECEIVE_BYTES : TCP_WND;
	sock->linger_s = -1;
	*err = type == STACK_TCP ? stack_tcp_open(sock) : stack_udp_open(sock);
	if (*err) {
		free(sock);
		return NULL;
	}
	return sock;
}

int stack_close(struct stack_socket *sock)
{
	if (sock->type == STACK_TCP)
		return stack_tcp_close(sock);
	stack_udp_close(sock);
	return 0;
}

void stack_set_user(struct stack_socket *sock, void *user)
{
	sock->user = user;
}

void *stack_user(const struct stack_socket *sock)
{
	return sock->user;
}

/* An address as lwIP has it; the wildcard of IPv6 stands for IPv4, too, unless that is not wanted. */
static void to_lwip(const struct stack_socket *sock, const struct stack_address *address, ip_addr_t *ip)
{
	stack_address_to_lwip(address, ip);
	if (address->family == STACK_IPV6 && ip_addr_isany(ip) && !sock->only_ipv6)
		ip_addr_copy(*ip, *IP_ANY_TYPE);
}

int stack_bind(struct stack_socket *sock, const struct stack_address *local)
{
	ip_addr_t ip;
	err_t err;

	if (local->family == STACK_IPV6 && sock->family == STACK_IPV4)
		return -EAFNOSUPPORT;
	if (sock->bound || sock->connected || sock->connecting)
		return -EINVAL;
	if (!stack_address_is_local(local))
		return -EADDRNOTAVAIL;
	to_lwip(sock, local, &ip);
	if (sock->type == STACK_UDP)
		err = udp_bind(sock->udp, &ip, local->port);
	else if (!sock->tcp)
		return -EINVAL;
	else
		err = tcp_bind(sock->tcp, &ip, local->port);
	if (err != ERR_OK)
		return err == ERR_BUF ? -EADDRINUSE : stack_errno(err);
	sock->bound = true;
	return 0;
}

int stack_connect(struct stack_socket *sock, const struct stack_address *peer)
{
	ip_addr_t ip;

	if (peer->family == STACK_IPV6 && sock->family == STACK_IPV4)
		return -EAFNOSUPPORT;
	if (peer->family == STACK_IPV4 && sock->only_ipv6)
		return -ENETUNREACH;
	if (sock->type == STACK_UDP)
		return stack_udp_connect(sock, peer);
	stack_address_to_lwip(peer, &ip);
	return peer->port ? stack_tcp_connect(sock, &ip, peer->port) : -ECONNREFUSED;
}

void stack_set_source(struct stack_socket *sock, const struct stack_address *source)
{
	sock->source = *source;
}

int64_t stack_send(struct stack_socket *sock, const void *data, size_t size_bytes, unsigned int flags,
		   const struct stack_address *peer)
{
	if (sock->type == STACK_TCP)
		return peer ? -EISCONN : stack_tcp_send(sock, data, size_bytes, flags);
	return stack_udp_send(sock, data, size_bytes, NULL, peer);
}

int64_t stack_send_from(struct stack_socket *sock, const void *data, size_t size_bytes, const struct stack_address *from,
			const struct stack_address *peer)
{
	return sock->type == STACK_TCP ? -EOPNOTSUPP : stack_udp_send(sock, data, size_bytes, from, peer);
}

int64_t stack_receive(struct stack_socket *sock, void *data, size_t size_bytes, unsigned int flags, struct stack_address *from)
{
	if (sock->type == STACK_UDP)
		return stack_udp_receive(sock, data, size_bytes, flags, from);
	if (from && stack_peer(sock, from))
		memset(from, 0, sizeof(*from));
	return stack_tcp_receive(sock, data, size_bytes, flags);
}

void stack_arrival(const struct stack_socket *sock, struct stack_arrival *arrival)
{
	*arrival = sock->arrival;
}

unsigned int stack_ready(const struct stack_socket *sock)
{
	return sock->type == STACK_TCP ? stack_tcp_ready(sock) : stack_udp_ready(sock);
}

unsigned int stack_news(const struct stack_socket *sock)
{
	return sock->news;
}

static void tell(struct stack_socket *sock, unsigned int anew)
{
	unsigned int ready = stack_ready(sock), told = sock->told;

	sock->news = ready & (~told | anew);
	sock->told = ready;
	if (stack_host_calls.changed && !sock->listener && (ready != told || sock->news))
		stack_host_calls.changed(stack_host_argument, sock);
}

void stack_socket_changed(struct stack_socket *sock)
{
	tell(sock, 0);
}

void stack_socket_received(struct stack_socket *sock)
{
	tell(sock, STACK_READABLE);
}

size_t stack_received_held_bytes(const struct pbuf *data)
{
	size_t bytes = sizeof(struct received);

	for (; data; data = data->next) {
		bytes += data->len + sizeof(*data);
		/* The headers, and of a segment what had come before, stay in front of the data. */
		if (data->type_internal & PBUF_TYPE_FLAG_STRUCT_DATA_CONTIGUOUS)
			bytes += (size_t)((const uint8_t *)data->payload - (const uint8_t *)data) - sizeof(*data);
	}
	return bytes;
}

bool stack_received_add(struct stack_socket *sock, struct pbuf *data)
{
	struct received *own = calloc(1, sizeof(*own));

	if (!own)
		return false;
	own->data = data;
	own->arrival.realtime_ns = stack_arrived_realtime_ns();
	if (sock->last)
		sock->last->next = own;
	else
		sock->first = own;
	sock->last = own;
	sock->waiting_bytes += data->tot_len;
	sock->held_bytes += stack_received_held_bytes(data);
	return true;
}

size_t stack_waiting_bytes(const struct stack_socket *sock)
{
	if (sock->type == STACK_UDP)
		return sock->first ? sock->first->data->tot_len : 0;
	return sock->waiting_bytes - sock->first_offset;
}

void stack_received_drop_first(struct stack_socket *sock)
{
	struct received *first = sock->first;

	sock->first = first->next;
	if (!sock->first)
		sock->last = NULL;
	sock->waiting_bytes -= first->data->tot_len;
	sock->held_bytes -= stack_received_held_bytes(first->data);
	pbuf_free(first->data);
	free(first);
}

int stack_take_error(struct stack_socket *sock)
{
	int err = sock->error;

	sock->error = 0;
	return err;
}

int stack_take_soft_error(struct stack_socket *sock)
{
	int err = sock->soft_error;

	sock->soft_error = 0;
	return err;
}

static bool in_range(int value, int least, int most)
{
	return value >= least && value <= most;
}

/* What the control blocks of both types begin with; NULL: the connection is gone. */
static struct ip_pcb *pcb_of(const struct stack_socket *sock)
{
	return sock->type == STACK_UDP ? (struct ip_pcb *)sock->udp : (struct ip_pcb *)sock->tcp;
}

static void set_flag(struct ip_pcb *pcb, u8_t flag, int value)
{
	if (value)
		ip_set_option(pcb, flag);
	else
		ip_reset_option(pcb, flag);
}

static int set_of_tcp(struct stack_socket *sock, enum stack_option option, int value)
{
	struct tcp_pcb *pcb = sock->tcp;

	if (option == STACK_SEGMENT_BYTES) {
		if (value && !in_range(value, SEGMENT_MIN_BYTES, SEGMENT_MAX_BYTES))
			return -EINVAL;
		sock->segment_bytes = value;
		if (pcb && sock->listening)
			((struct tcp_pcb_listen *)pcb)->mss_most = (u16_t)value;
		else if (pcb)
			pcb->mss_most = (u16_t)value;
		return 0;
	}
	if (sock->listening)
		return -EINVAL;
	if (!pcb) /* the connection is over, and nobody hears of it */
		return 0;
	switch (option) {
	case STACK_NO_DELAY:
		if (value)
			tcp_nagle_disable(pcb);
		else
			tcp_nagle_enable(pcb);
		return 0;
	case STACK_KEEP_ALIVE:
		set_flag(pcb_of(sock), SOF_KEEPALIVE, value);
		return 0;
	case STACK_KEEP_IDLE_S:
		if (!in_range(value, 1, KEEP_MAX_S))
			return -EINVAL;
		pcb->keep_idle = (u32_t)value * MS_PER_S;
		return 0;
	case STACK_KEEP_INTERVAL_S:
		if (!in_range(value, 1, KEEP_MAX_S))
			return -EINVAL;
		pcb->keep_intvl = (u32_t)value * MS_PER_S;
		return 0;
	case STACK_KEEP_COUNT:
		if (!in_range(value, 1, KEEP_MAX_COUNT))
			return -EINVAL;
		pcb->keep_cnt = (u32_t)value;
		return 0;
	case STACK_USER_TIMEOUT_MS:
		if (value < 0)
			return -EINVAL;
		pcb->recovery.give_up_us = (uint64_t)value * US_PER_MS;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

int stack_set(struct stack_socket *sock, enum stack_option option, int value)
{
	switch (option) {
	case STACK_REUSE_ADDRESS:
		if (pcb_of(sock))
			set_flag(pcb_of(sock), SOF_REUSEADDR, value);
		return 0;
	case STACK_TYPE_OF_SERVICE:
		if (!in_range(value, 0, UINT8_MAX))
			return -EINVAL;
		if (pcb_of(sock))
			pcb_of(sock)->tos = (u8_t)value;
		return 0;
	case STACK_ONLY_IPV6:
		if (sock->family != STACK_IPV6)
			return -ENOPROTOOPT;
		if (sock->bound)
			return -EINVAL;
		sock->only_ipv6 = value != 0;
		return 0;
	case STACK_LINGER_S:
		sock->linger_s = value;
		return 0;
	case STACK_SEND_BYTES:
		sock->send_bytes_set = true;
		sock->send_bytes = value < BYTES_MIN ? BYTES_MIN : value > TCP_SND_BUF ? TCP_SND_BUF : value;
		return 0;
	case STACK_RECEIVE_BYTES:
		if (sock->type == STACK_UDP)
			sock->receive_bytes = value < BYTES_MIN ? BYTES_MIN : value;
		return 0;
	default:
		return sock->type == STACK_TCP ? set_of_tcp(sock, option, value) : -ENOPROTOOPT;
	}
}

int stack_get(const struct stack_socket *sock, enum stack_option option, int *value)
{
	const struct tcp_pcb *pcb = sock->type == STACK_TCP && !sock->listening ? sock->tcp : NULL;

	switch (option) {
	case STACK_REUSE_ADDRESS:
		*value = pcb_of(sock) && ip_get_option(pcb_of(sock), SOF_REUSEADDR);
		return 0;
	case STACK_TYPE_OF_SERVICE:
		*value = pcb_of(sock) ? pcb_of(sock)->tos : 0;
		return 0;
	case STACK_ONLY_IPV6: *value = sock->only_ipv6; return 0;
	case STACK_LINGER_S: *value = sock->linger_s; return 0;
	case STACK_SEND_BYTES: *value = sock->send_bytes; return 0;
	case STACK_RECEIVE_BYTES: *value = sock->receive_bytes; return 0;
	default: break;
	}
	if (!pcb)
		return sock->type == STACK_TCP ? -EINVAL : -ENOPROTOOPT;
	switch (option) {
	case STACK_NO_DELAY: *value = tcp_nagle_disabled(pcb) != 0; return 0;
	case STACK_KEEP_ALIVE: *value = ip_get_option(pcb, SOF_KEEPALIVE) != 0; return 0;
	case STACK_KEEP_IDLE_S: *value = (int)(pcb->keep_idle / MS_PER_S); return 0;
	case STACK_KEEP_INTERVAL_S: *value = (int)(pcb->keep_intvl / MS_PER_S); return 0;
	case STACK_KEEP_COUNT: *value = (int)pcb->keep_cnt; return 0;
	case STACK_USER_TIMEOUT_MS: *value = (int)(pcb->recovery.give_up_us / US_PER_MS); return 0;
	case STACK_SEGMENT_BYTES: *value = pcb->mss; return 0;
	default: return -ENOPROTOOPT;
	}
}

int stack_local(const struct stack_socket *sock, struct stack_address *local)
{
	static const ip_addr_t none = IPADDR4_INIT_BYTES(0, 0, 0, 0);
	const ip_addr_t *ip = &none;
	uint16_t port = 0;

	if (sock->type == STACK_UDP) {
		ip = &sock->udp->local_ip;
		port = sock->udp->local_port;
	} else if (sock->tcp) {
		ip = &sock->tcp->local_ip;
		port = sock->tcp->local_port;
	} else if (sock->local.port) {
		*local = sock->local;
		return 0;
	}
	stack_address_from_lwip(ip, port, local);
	if (sock->family == STACK_IPV6 && ip_addr_isany(ip))
		*local = (struct stack_address){ .family = STACK_IPV6, .port = port };
	return 0;
}

int stack_peer(const struct stack_socket *sock, struct stack_address *peer)
{
	if (sock->type == STACK_UDP) {
		if (!sock->has_peer)
			return -ENOTCONN;
		*peer = sock->peer;
		return 0;
	}
	if (!sock->connected || !sock->tcp || sock->tcp->state == TIME_WAIT) /* in which there is no connection for the kernel, either */
		return -ENOTCONN;
	stack_address_from_lwip(&sock->tcp->remote_ip, sock->tcp->remote_port, peer);
	return 0;
}

bool stack_port_in_use(enum stack_type type, uint16_t port)
{
	return type == STACK_TCP ? stack_tcp_port_in_use(port) : stack_udp_port_in_use(port);
}

void stack_each(stack_take *take, void *argument)
{
	stack_tcp_each(take, argument);
	stack_udp_each(take, argument);
}
