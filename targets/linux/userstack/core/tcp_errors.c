/* SPDX-License-Identifier: Apache-2.0 */
/* What an error of ICMP, or another MTU of the interface, does to a connection. An error has to quote a segment that is under way (RFC 5927): a forger has to guess. */
#include "stack_internal.h"

#include "lwip/priv/tcp_priv.h"

enum { IPV4_MTU_MIN_BYTES = STACK_FRAGMENT_BYTES, IPV6_MTU_MIN_BYTES = 1280, TCP_HEADER_BYTES = 20, IPV4_BYTES = 20, IPV6_BYTES = 40 };

static struct tcp_pcb *find(const struct stack_address *local, const struct stack_address *remote, uint32_t sequence)
{
	ip_addr_t local_ip, remote_ip;
	struct tcp_pcb *pcb;

	stack_address_to_lwip(local, &local_ip);
	stack_address_to_lwip(remote, &remote_ip);
	for (pcb = tcp_active_pcbs; pcb; pcb = pcb->next) {
		if (pcb->local_port == local->port && pcb->remote_port == remote->port && ip_addr_cmp(&pcb->local_ip, &local_ip) &&
		    ip_addr_cmp(&pcb->remote_ip, &remote_ip))
			break;
	}
	return pcb && TCP_SEQ_GEQ(sequence, pcb->lastack) && TCP_SEQ_LT(sequence, pcb->snd_nxt) ? pcb : NULL;
}

/* Let segments be no larger than packets of this size. */
static void fit_into(struct tcp_pcb *pcb, u16_t mtu_bytes)
{
	tcp_lower_mss(pcb, (u16_t)(mtu_bytes - TCP_HEADER_BYTES - (IP_IS_V4(&pcb->remote_ip) ? IPV4_BYTES : IPV6_BYTES)));
}

void stack_tcp_unreachable(const struct stack_address *local, const struct stack_address *remote, uint32_t sequence, int err)
{
	struct tcp_pcb *pcb = find(local, remote, sequence);
	struct stack_socket *sock = pcb && pcb->state != SYN_RCVD ? pcb->callback_arg : NULL;

	if (!sock)
		return;
	sock->soft_error = err;
	/* As the kernel: what is not yet connected fails, what is goes on and fails by time alone (RFC 9293, MUST-56). */
	if (pcb->state == SYN_SENT)
		tcp_abandon(pcb, 0);
}

void stack_tcp_too_big(const struct stack_address *local, const struct stack_address *remote, uint32_t sequence, uint32_t mtu_bytes)
{
	uint32_t least_bytes = local->family == STACK_IPV4 ? IPV4_MTU_MIN_BYTES : IPV6_MTU_MIN_BYTES;
	struct tcp_pcb *pcb = find(local, remote, sequence);

	if (!pcb || mtu_bytes > UINT16_MAX)
		return;
	if (mtu_bytes < least_bytes)
		mtu_bytes = least_bytes;
	fit_into(pcb, (u16_t)mtu_bytes);
}

void stack_tcp_mtu_changed(uint16_t mtu_bytes)
{
	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next)
		fit_into(pcb, mtu_bytes);
}
