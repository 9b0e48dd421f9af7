/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's struct tcp_info; the C library's is shorter, and one file cannot have both. */
#include "port_tcp_info.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

#include "port_libc.h"

int tcp_info_get(const struct stack_socket *stack, int fd, void *value, socklen_t *length)
{
	struct tcp_info own = { 0 };
	struct stack_info info;
	int err = stack_info(stack, &info);

	if (err)
		return err;
	/* How much of it there is the kernel says, of the socket behind. */
	if (libc_calls()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, value, length))
		return -errno;
	own.tcpi_state = (uint8_t)info.state;
	own.tcpi_rto = (uint32_t)info.retransmission_timeout_us;
	own.tcpi_snd_mss = own.tcpi_rcv_mss = info.segment_bytes;
	own.tcpi_rtt = (uint32_t)info.smoothed_rtt_us;
	own.tcpi_total_retrans = (uint32_t)info.retransmitted;
	own.tcpi_notsent_bytes = (uint32_t)info.unsent_bytes;
	own.tcpi_segs_out = (uint32_t)info.sent_segments;
	own.tcpi_snd_wnd = (uint32_t)info.send_window_bytes;
	if (info.segment_bytes) {
		own.tcpi_snd_cwnd = (uint32_t)(info.congestion_window_bytes / info.segment_bytes);
		own.tcpi_unacked = (uint32_t)((info.in_flight_bytes + info.segment_bytes - 1) / info.segment_bytes);
	}
	memset(value, 0, *length);
	memcpy(value, &own, *length < sizeof(own) ? *length : sizeof(own));
	return 0;
}
