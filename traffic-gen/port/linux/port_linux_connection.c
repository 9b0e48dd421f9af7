/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: a connection by TCP_INFO. The kernel's struct is longer than the C library's, and one file cannot have both. */
#include "port/port_connection.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

int port_connection_read(port_socket sock, struct port_connection *found)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	int64_t mss_bytes, in_flight;

	if (getsockopt((int)sock, IPPROTO_TCP, TCP_INFO, &info, &length))
		return -errno;
	if (length < offsetof(struct tcp_info, tcpi_delivered)) /* Linux before 4.10 */
		return -ENOTSUP;
	mss_bytes = info.tcpi_snd_mss;
	in_flight = (int64_t)info.tcpi_unacked - info.tcpi_sacked - info.tcpi_lost + info.tcpi_retrans;
	*found = (struct port_connection){
		.window_bytes = info.tcpi_snd_cwnd * mss_bytes,
		.in_flight_bytes = in_flight > 0 ? in_flight * mss_bytes : 0,
		.rtt_us = info.tcpi_rtt,
		.busy_us = (int64_t)info.tcpi_busy_time,
		.receiver_limited_us = (int64_t)info.tcpi_rwnd_limited,
		.buffer_limited_us = (int64_t)info.tcpi_sndbuf_limited,
		.resent = info.tcpi_total_retrans,
	};
	return 0;
}

int port_congestion_set(port_socket sock, const char *name)
{
	return setsockopt((int)sock, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) ? -errno : 0;
}

int port_congestion_read(port_socket sock, char *name)
{
	socklen_t length = PORT_CONGESTION_BYTES - 1;

	memset(name, 0, PORT_CONGESTION_BYTES);
	return getsockopt((int)sock, IPPROTO_TCP, TCP_CONGESTION, name, &length) ? -errno : 0;
}

int port_segment_set(port_socket sock, int bytes)
{
	return setsockopt((int)sock, IPPROTO_TCP, TCP_MAXSEG, &bytes, sizeof(bytes)) ? -errno : 0;
}
