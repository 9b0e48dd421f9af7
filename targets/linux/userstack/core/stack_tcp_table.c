/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of connections of TCP: each with its state and figures, ports in use, and those that nobody holds any more. */
#include <errno.h>
#include <string.h>

#include "recovery.h"
#include "stack_internal.h"

#include "lwip/priv/tcp_priv.h"
#include "lwip/tcp.h"

size_t stack_tcp_held_bytes(const struct tcp_pcb *pcb)
{
	return (size_t)TCP_SND_BUF - pcb->snd_buf;
}

/* The number that Linux has for a state. */
static int linux_state(enum tcp_state state)
{
	enum { ESTABLISHED_ = 1, SYN_SENT_, SYN_RECV_, FIN_WAIT1_, FIN_WAIT2_, TIME_WAIT_, CLOSE_, CLOSE_WAIT_, LAST_ACK_, LISTEN_, CLOSING_ };

	switch (state) {
	case LISTEN: return LISTEN_;
	case SYN_SENT: return SYN_SENT_;
	case SYN_RCVD: return SYN_RECV_;
	case ESTABLISHED: return ESTABLISHED_;
	case FIN_WAIT_1: return FIN_WAIT1_;
	case FIN_WAIT_2: return FIN_WAIT2_;
	case CLOSE_WAIT: return CLOSE_WAIT_;
	case CLOSING: return CLOSING_;
	case LAST_ACK: return LAST_ACK_;
	case TIME_WAIT: return TIME_WAIT_;
	default: return CLOSE_;
	}
}

static void info_of(const struct tcp_pcb *pcb, struct stack_info *info)
{
	memset(info, 0, sizeof(*info));
	info->state = linux_state(pcb ? pcb->state : CLOSED);
	if (!pcb || pcb->state == LISTEN)
		return;
	info->send_unacknowledged = pcb->lastack;
	info->send_next = pcb->snd_nxt;
	info->receive_next = pcb->rcv_nxt;
	info->congestion_window_bytes = pcb->cwnd;
	info->send_window_bytes = pcb->snd_wnd;
	info->receive_window_bytes = pcb->rcv_wnd;
	info->unacknowledged_bytes = pcb->snd_nxt - pcb->lastack;
	info->unsent_bytes = stack_tcp_held_bytes(pcb) > info->unacknowledged_bytes ? stack_tcp_held_bytes(pcb) - info->unacknowledged_bytes : 0;
	info->in_flight_bytes = pcb->recovery.in_flight_bytes;
	info->smoothed_rtt_us = pcb->recovery.smoothed_rtt_us;
	info->retransmission_timeout_us = recovery_timeout_us(&pcb->recovery);
	info->sent_segments = pcb->recovery.counts.sent_segments;
	info->retransmitted = pcb->recovery.counts.retransmitted_segments;
	info->retransmitted_by_rack = pcb->recovery.counts.by_rack;
	info->retransmitted_by_probe = pcb->recovery.counts.by_probe;
	info->retransmitted_by_timeout = pcb->recovery.counts.by_timeout;
	info->duplicates = pcb->recovery.counts.duplicate_segments;
	info->segment_bytes = pcb->mss;
}

int stack_info(const struct stack_socket *sock, struct stack_info *info)
{
	info_of(sock->type == STACK_TCP ? sock->tcp : NULL, info);
	if (sock->type != STACK_TCP)
		return -EOPNOTSUPP;
	return 0;
}

static void fill_in(struct stack_entry *entry, const struct tcp_pcb *pcb)
{
	const struct stack_socket *sock = entry->sock;

	info_of(pcb, &entry->info);
	stack_address_from_lwip(&pcb->local_ip, pcb->local_port, &entry->local);
	if (sock)
		stack_local(sock, &entry->local);
	if (pcb->state == LISTEN) {
		entry->accept_waiting = sock ? sock->accept_waiting : 0;
		entry->accept_most = sock ? sock->accept_most : 0;
		return;
	}
	if (pcb->state != CLOSED)
		stack_address_from_lwip(&pcb->remote_ip, pcb->remote_port, &entry->peer);
	if (sock)
		entry->waiting_bytes = stack_waiting_bytes(sock);
}

void stack_tcp_each(stack_take *take, void *argument)
{
	const struct tcp_pcb *lists[] = { tcp_listen_pcbs.pcbs, tcp_bound_pcbs, tcp_active_pcbs, tcp_tw_pcbs };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct tcp_pcb *pcb = lists[i]; pcb; pcb = pcb->next) {
			/* One that is not yet established has its listener's argument, and that may be closed. */
			struct stack_entry entry = {
				.type = STACK_TCP, .sock = pcb->state == SYN_RCVD ? NULL : pcb->callback_arg,
			};

			fill_in(&entry, pcb);
			take(argument, &entry);
		}
	}
}

static bool has_port(const struct tcp_pcb *pcb, uint16_t port)
{
	for (; pcb; pcb = pcb->next) {
		if (pcb->local_port == port)
			return true;
	}
	return false;
}

bool stack_tcp_port_in_use(uint16_t port)
{
	return has_port(tcp_listen_pcbs.pcbs, port) || has_port(tcp_bound_pcbs, port) || has_port(tcp_active_pcbs, port) ||
	       has_port(tcp_tw_pcbs, port);
}

/* Connections whose sockets are closed: those have parted from them. */
static unsigned int count_parted(bool half_closed)
{
	unsigned int count = 0;

	for (const struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next)
		count += !pcb->callback_arg && pcb->state != SYN_RCVD && (pcb->state == FIN_WAIT_2) == half_closed;
	return count;
}

unsigned int stack_unfinished(void)
{
	return count_parted(false);
}

unsigned int stack_half_closed(void)
{
	return count_parted(true);
}
