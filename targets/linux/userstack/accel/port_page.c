/* SPDX-License-Identifier: Apache-2.0 */
#include "port_page.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/stack.h"
#include "neighbours.h"
#include "port_libc.h"
#include "port_rings.h"
#include "port_sockets.h"
#include "service/program_page.h"

static struct program_page *page; /* NULL: there is none */

void page_forget(void)
{
	page = NULL;
}

int page_begin(void)
{
	int err, memory = memfd_create("bw-accel page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map;

	if (memory < 0)
		return -errno;
	if (ftruncate(memory, sizeof(*page)) ||
	    libc_calls()->fcntl64(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	map = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (map == MAP_FAILED)
		goto fail;
	madvise(map, sizeof(*page), MADV_DONTFORK); /* a child has no stack */
	if (page)
		munmap(page, sizeof(*page)); /* of a service that could not be had */
	page = map;
	page->version = PROGRAM_PAGE_VERSION;
	page->size_bytes = sizeof(*page);
	snprintf(page->name, sizeof(page->name), "%s", program_invocation_short_name);
	return memory;
fail:
	err = -errno;
	libc_calls()->close(memory);
	return err;
}

static void fill_in_counts(const struct rings *rings)
{
	struct stack_counts counts;

	stack_counts(&counts);
	memcpy(page->counts, (const uint64_t[PROGRAM_COUNTS]){
		[PROGRAM_IP_IN] = counts.packets_in,
		[PROGRAM_IP_OUT] = counts.packets_out,
		[PROGRAM_IP_MALFORMED] = counts.ip_malformed,
		[PROGRAM_IP_CHECKSUM] = counts.ip_checksum,
		[PROGRAM_TCP_IN] = counts.tcp_in,
		[PROGRAM_TCP_OUT] = counts.tcp_out,
		[PROGRAM_TCP_MALFORMED] = counts.tcp_malformed,
		[PROGRAM_TCP_CHECKSUM] = counts.tcp_checksum,
		[PROGRAM_TCP_NO_MEMORY] = counts.tcp_no_memory,
		[PROGRAM_TCP_RETRANSMITTED] = counts.retransmitted,
		[PROGRAM_TCP_RETRANSMITTED_BY_RACK] = counts.retransmitted_by_rack,
		[PROGRAM_TCP_RETRANSMITTED_BY_PROBE] = counts.retransmitted_by_probe,
		[PROGRAM_TCP_RETRANSMITTED_BY_TIMEOUT] = counts.retransmitted_by_timeout,
		[PROGRAM_TCP_DUPLICATES] = counts.duplicates,
		[PROGRAM_UDP_IN] = counts.udp_in,
		[PROGRAM_UDP_OUT] = counts.udp_out,
		[PROGRAM_UDP_MALFORMED] = counts.udp_malformed,
		[PROGRAM_UDP_CHECKSUM] = counts.udp_checksum,
		[PROGRAM_UDP_NO_PORT] = counts.udp_no_port,
		[PROGRAM_UDP_FULL] = counts.udp_full,
		[PROGRAM_FRAMES_IN] = rings->frames_in,
		[PROGRAM_FRAMES_OUT] = rings->frames_out,
		[PROGRAM_FRAMES_NO_ROOM] = rings->full,
		[PROGRAM_NEIGHBOUR_DROPPED] = neighbours_dropped(),
	}, sizeof(page->counts));
}

static void count_kind(const struct stack_entry *entry)
{
	if (entry->type == STACK_UDP)
		page->udp_open++;
	else if (entry->info.state == TCP_LISTEN)
		page->tcp_listening++;
	else if (entry->sock)
		page->tcp_open++;
	else
		page->tcp_without_socket++;
}

static void fill_in_socket(struct program_page_socket *to, const struct stack_entry *entry)
{
	const struct open_socket *sock = entry->sock ? stack_user(entry->sock) : NULL;
	const struct stack_info *info = &entry->info;

	*to = (struct program_page_socket){
		.protocol = entry->type == STACK_TCP ? IPPROTO_TCP : IPPROTO_UDP,
		.family = (uint8_t)entry->local.family,
		.state = (uint8_t)info->state,
		.descriptor = sock ? sock->fd : -1,
		.local_port = entry->local.port,
		.peer_port = entry->peer.port,
		.accept_waiting = entry->accept_waiting,
		.accept_most = entry->accept_most,
		.segment_bytes = info->segment_bytes,
		.waiting_bytes = entry->waiting_bytes,
		.unsent_bytes = info->unsent_bytes,
		.unacknowledged_bytes = info->unacknowledged_bytes,
		.send_window_bytes = info->send_window_bytes,
		.receive_window_bytes = info->receive_window_bytes,
		.congestion_window_bytes = info->congestion_window_bytes,
		.smoothed_rtt_us = info->smoothed_rtt_us,
		.retransmission_timeout_us = info->retransmission_timeout_us,
		.sent_segments = info->sent_segments,
		.retransmitted = info->retransmitted,
		.retransmitted_by_rack = info->retransmitted_by_rack,
		.retransmitted_by_probe = info->retransmitted_by_probe,
		.retransmitted_by_timeout = info->retransmitted_by_timeout,
		.duplicates = info->duplicates,
	};
	memcpy(to->local_ip, entry->local.ip, sizeof(to->local_ip));
	memcpy(to->peer_ip, entry->peer.ip, sizeof(to->peer_ip));
}

static void take_entry(void *argument, const struct stack_entry *entry)
{
	(void)argument;
	count_kind(entry);
	if (page->sockets == PROGRAM_PAGE_SOCKETS)
		page->sockets_left_out++;
	else
		fill_in_socket(&page->socket[page->sockets++], entry);
}

void page_fill(const struct rings *rings)
{
	uint64_t number;

	if (!page)
		return;
	number = page->begun + 1;
	__atomic_store_n(&page->begun, number, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	page->tcp_listening = page->tcp_open = page->tcp_without_socket = page->udp_open = 0;
	page->sockets = page->sockets_left_out = 0;
	fill_in_counts(rings);
	stack_each(take_entry, NULL);
	__atomic_store_n(&page->finished, number, __ATOMIC_RELEASE);
}
