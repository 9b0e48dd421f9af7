/* SPDX-License-Identifier: Apache-2.0 */
#include "service/program_page.h"

#include <string.h>

enum { TCP = 6, UDP = 17, STATES = 12 };

const char *const program_count_names[PROGRAM_COUNTS] = {
	[PROGRAM_IP_IN] = "ip_in",
	[PROGRAM_IP_OUT] = "ip_out",
	[PROGRAM_IP_MALFORMED] = "ip_malformed",
	[PROGRAM_IP_CHECKSUM] = "ip_checksum",
	[PROGRAM_TCP_IN] = "tcp_in",
	[PROGRAM_TCP_OUT] = "tcp_out",
	[PROGRAM_TCP_MALFORMED] = "tcp_malformed",
	[PROGRAM_TCP_CHECKSUM] = "tcp_checksum",
	[PROGRAM_TCP_NO_MEMORY] = "tcp_no_memory",
	[PROGRAM_TCP_RETRANSMITTED] = "tcp_retransmitted",
	[PROGRAM_TCP_RETRANSMITTED_BY_RACK] = "tcp_retransmitted_by_rack",
	[PROGRAM_TCP_RETRANSMITTED_BY_PROBE] = "tcp_retransmitted_by_probe",
	[PROGRAM_TCP_RETRANSMITTED_BY_TIMEOUT] = "tcp_retransmitted_by_timeout",
	[PROGRAM_TCP_DUPLICATES] = "tcp_duplicates",
	[PROGRAM_UDP_IN] = "udp_in",
	[PROGRAM_UDP_OUT] = "udp_out",
	[PROGRAM_UDP_MALFORMED] = "udp_malformed",
	[PROGRAM_UDP_CHECKSUM] = "udp_checksum",
	[PROGRAM_UDP_NO_PORT] = "udp_no_port",
	[PROGRAM_UDP_FULL] = "udp_full",
	[PROGRAM_FRAMES_IN] = "frames_in",
	[PROGRAM_FRAMES_OUT] = "frames_out",
	[PROGRAM_FRAMES_NO_ROOM] = "frames_no_room",
	[PROGRAM_NEIGHBOUR_DROPPED] = "neighbour_dropped",
};

/* By their numbers in netinet/tcp.h. */
static const char *const state_names[STATES] = {
	NULL, "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN",
	"CLOSING",
};

const char *program_state_name(uint8_t state)
{
	return state < STATES ? state_names[state] : NULL;
}

static bool numbers_are_sound(const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i] > PROGRAM_PAGE_NUMBER_MAX)
			return false;
	}
	return true;
}

static bool socket_is_sound(const struct program_page_socket *sock)
{
	const size_t numbers = (sizeof(*sock) - offsetof(struct program_page_socket, waiting_bytes)) / sizeof(uint64_t);

	return (sock->protocol == TCP || sock->protocol == UDP) && (sock->family == 4 || sock->family == 6) && program_state_name(sock->state) &&
	       numbers_are_sound(&sock->waiting_bytes, numbers);
}

bool program_page_check(const struct program_page *page)
{
	if (page->version != PROGRAM_PAGE_VERSION || page->size_bytes != sizeof(*page) || page->sockets > PROGRAM_PAGE_SOCKETS ||
	    !memchr(page->name, 0, sizeof(page->name)) || !numbers_are_sound(page->counts, PROGRAM_COUNTS))
		return false;
	for (uint32_t i = 0; i < page->sockets; i++) {
		if (!socket_is_sound(&page->socket[i]))
			return false;
	}
	return true;
}
