/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of UDP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack_internal.h"

#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/udp.h"

static void heard(void *argument, struct udp_pcb *pcb, struct pbuf *data, const ip_addr_t *from, u16_t port)
{
	struct stack_socket *sock = argument;
	size_t most = (size_t)sock->receive_bytes;
	/* As in the kernel one datagram always has room, however large, and as much again is for what is not data. */
	bool has_room = !sock->first || (sock->waiting_bytes + data->tot_len <= most &&
					 sock->held_bytes + stack_received_held_bytes(data) <= 2 * most);

	if (sock->shut_read || !has_room || !stack_received_add(sock, data)) {
		stack_count_udp_full();
		pbuf_free(data);
		return;
	}
	stack_address_from_lwip(from, port, &sock->last->from);
	stack_address_from_lwip(ip_current_dest_addr(), pcb->local_port, &sock->last->arrival.to);
	stack_socket_received(sock);
}

int stack_udp_open(struct stack_socket *sock)
{
	sock->udp = udp_new_ip_type(sock->family == STACK_IPV4 ? IPADDR_TYPE_V4 : IPADDR_TYPE_ANY);
	if (!sock->udp)
		return -ENOMEM;
	udp_recv(sock->udp, heard, sock);
	return 0;
}

void stack_udp_close(struct stack_socket *sock)
{
	udp_remove(sock->udp);
	while (sock->first)
		stack_received_drop_first(sock);
	free(sock);
}

/* Whether a socket sends to a family from the address that the host has named. */
static bool has_source(const struct stack_socket *sock, enum stack_family family, ip_addr_t *source)
{
	if (!ip_addr_isany(&sock->udp->local_ip) || sock->source.family != family || !stack_address_is_local(&sock->source))
		return false;
	stack_address_to_lwip(&sock->source, source);
	return true;
}

int stack_udp_connect(struct stack_socket *sock, const struct stack_address *peer)
{
	ip_addr_t ip, source;
	err_t err;

	stack_address_to_lwip(peer, &ip);
	err = udp_connect(sock->udp, &ip, peer->port);
	if (err != ERR_OK)
		return stack_errno(err);
	/* From where it sends is settled now, and it hears that address alone. */
	if (has_source(sock, peer->family, &source)) {
		ip_addr_copy(sock->udp->local_ip, source);
	} else if (ip_addr_isany(&sock->udp->local_ip)) {
		struct netif *netif = ip_route(&sock->udp->local_ip, &ip);
		const ip_addr_t *own = netif ? ip_netif_get_local_ip(netif, &ip) : NULL;

		if (!own)
			return -ENETUNREACH;
		ip_addr_copy(sock->udp->local_ip, *own);
	}
	sock->peer = *peer;
	sock->has_peer = sock->bound = true;
	return 0;
}

/* The address that a datagram is sent from, where lwIP is not to choose it. */
static bool source_of(const struct stack_socket *sock, const struct stack_address *from, enum stack_family family, ip_addr_t *source)
{
	if (!from)
		return has_source(sock, family, source);
	stack_address_to_lwip(from, source);
	return true;
}

int64_t stack_udp_send(struct stack_socket *sock, const void *data, size_t size_bytes, const struct stack_address *from,
		       const struct stack_address *peer)
{
	enum { DATAGRAM_MAX = 65507 };
	struct pbuf *datagram;
	ip_addr_t ip, source;
	err_t err;

	if (sock->error)
		return -stack_take_error(sock);
	if (sock->shut_write)
		return -EPIPE;
	if (!peer && !sock->has_peer)
		return -EDESTADDRREQ;
	if (size_bytes > DATAGRAM_MAX)
		return -EMSGSIZE;
	peer = peer ? peer : &sock->peer;
	if (!peer->port)
		return -EINVAL;
	if (sock->family == STACK_IPV4 && peer->family != STACK_IPV4)
		return -EAFNOSUPPORT;
	if (sock->only_ipv6 && peer->family != STACK_IPV6)
		return -ENETUNREACH;
	if (from && (from->family != peer->family || !stack_address_is_local(from)))
		return -EINVAL;
	datagram = pbuf_alloc(PBUF_TRANSPORT, (u16_t)size_bytes, PBUF_RAM);
	if (!datagram)
		return -ENOBUFS;
	pbuf_take(datagram, data, (u16_t)size_bytes);
	stack_address_to_lwip(peer, &ip);
	if (source_of(sock, from, peer->family, &source))
		err = udp_sendto_if_src(sock->udp, datagram, &ip, peer->port, netif_default, &source);
	else
		err = udp_sendto(sock->udp, datagram, &ip, peer->port);
	pbuf_free(datagram);
	if (err != ERR_OK)
		return stack_errno(err);
	sock->bound = true;
	return (int64_t)size_bytes;
}

int64_t stack_udp_receive(struct stack_socket *sock, void *data, size_t size_bytes, unsigned int flags, struct stack_address *from)
{
	struct received *first = sock->first;
	size_t length;

	if (sock->error)
		return -stack_take_error(sock);
	if (!first) {
		sock->arrival = (struct stack_arrival){ 0 };
		return sock->shut_read ? 0 : -EAGAIN;
	}
	length = first->data->tot_len;
	if (length > size_bytes && !(flags & STACK_TRUNCATE))
		length = size_bytes;
	pbuf_copy_partial(first->data, data, (u16_t)(size_bytes < UINT16_MAX ? size_bytes : UINT16_MAX), 0);
	if (from)
		*from = first->from;
	sock->arrival = first->arrival;
	if (!(flags & STACK_PEEK)) {
		stack_received_drop_first(sock);
		stack_socket_changed(sock);
	}
	return (int64_t)length;
}

unsigned int stack_udp_ready(const struct stack_socket *sock)
{
	unsigned int ready = STACK_WRITABLE;

	if (sock->error)
		ready |= STACK_ERROR;
	if (sock->first || sock->shut_read)
		ready |= STACK_READABLE;
	if (sock->shut_read)
		ready |= STACK_PEER_CLOSED;
	return ready;
}

void stack_udp_unreachable(const struct stack_address *local, const struct stack_address *remote, int err)
{
	ip_addr_t local_ip, remote_ip;

	stack_address_to_lwip(local, &local_ip);
	stack_address_to_lwip(remote, &remote_ip);
	for (struct udp_pcb *pcb = udp_pcbs; pcb; pcb = pcb->next) {
		struct stack_socket *sock = pcb->recv_arg;

		if (!sock || !(pcb->flags & UDP_FLAGS_CONNECTED) || pcb->local_port != local->port || pcb->remote_port != remote->port ||
		    !ip_addr_cmp(&pcb->local_ip, &local_ip) || !ip_addr_cmp(&pcb->remote_ip, &remote_ip))
			continue;
		sock->error = err;
		stack_socket_received(sock);
	}
}

bool stack_udp_port_in_use(uint16_t port)
{
	for (const struct udp_pcb *pcb = udp_pcbs; pcb; pcb = pcb->next) {
		if (pcb->local_port == port)
			return true;
	}
	return false;
}

void stack_udp_each(stack_take *take, void *argument)
{
	enum { ESTABLISHED_ = 1, CLOSE_ = 7 }; /* as Linux numbers them */

	for (const struct udp_pcb *pcb = udp_pcbs; pcb; pcb = pcb->next) {
		const struct stack_socket *sock = pcb->recv_arg;
		struct stack_entry entry = { .type = STACK_UDP, .sock = sock, .info.state = CLOSE_ };

		if (!sock)
			continue;
		stack_local(sock, &entry.local);
		if (stack_peer(sock, &entry.peer) == 0)
			entry.info.state = ESTABLISHED_;
		entry.waiting_bytes = sock->waiting_bytes;
		take(argument, &entry);
	}
}
