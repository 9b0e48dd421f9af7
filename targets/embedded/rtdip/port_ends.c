/* SPDX-License-Identifier: Apache-2.0 */
#include "ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config/options.h"

#define NS_PER_S INT64_C(1000000000)

int64_t end_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct sockaddr_in to_sockaddr(const struct address *address)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(address->port), .sin_addr.s_addr = htonl(address->ipv4),
	};
}

int end_open(struct end *end, const char *local, const char *socket_path, unsigned int flags)
{
	struct address address;
	int64_t port;
	int err;

	*end = (struct end){ .sock = -1 };
	if (option_parse_int(local, 0, UINT16_MAX, &port) == 0) {
		err = rtdip_open(socket_path, flags, &end->handle);
		if (err)
			return err;
		err = rtdip_bind(end->handle, (uint16_t)port, 0);
		if (err < 0) {
			end_close(end);
			return err;
		}
		end->port = (uint16_t)err;
		return 0;
	}
	if (address_parse(local, &address))
		return -EINVAL;
	end->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (end->sock >= 0) {
		struct sockaddr_in place = to_sockaddr(&address);

		if (bind(end->sock, (struct sockaddr *)&place, sizeof(place)) == 0)
			return 0;
	}
	err = -errno;
	end_close(end);
	return err;
}

void end_close(struct end *end)
{
	if (end->handle)
		rtdip_close(end->handle);
	if (end->sock >= 0)
		close(end->sock);
	*end = (struct end){ .sock = -1 };
}

int end_parse_peer(const struct end *end, const char *text, struct peer *peer)
{
	unsigned int mac[RTDIP_MAC_BYTES], port;
	int used = 0;

	if (!end->handle)
		return address_parse(text, &peer->udp);
	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x/%5u%n", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5], &port,
		   &used) != RTDIP_MAC_BYTES + 1 || text[used] != '\0' || port < 1 || port > UINT16_MAX)
		return -EINVAL;
	for (int i = 0; i < RTDIP_MAC_BYTES; i++)
		peer->rtdip.mac[i] = (uint8_t)mac[i];
	peer->rtdip.port = (uint16_t)port;
	return 0;
}

int64_t end_send(struct end *end, const struct peer *to, enum rtdip_priority priority, const void *data, size_t size_bytes)
{
	struct sockaddr_in place;
	ssize_t sent;

	if (end->handle)
		return rtdip_send(end->handle, &to->rtdip, end->port, priority, data, size_bytes);
	place = to_sockaddr(&to->udp);
	sent = sendto(end->sock, data, size_bytes, MSG_NOSIGNAL, (struct sockaddr *)&place, sizeof(place));
	return sent < 0 ? -errno : sent;
}

static int64_t receive_rtdip(struct end *end, struct peer *from, enum rtdip_priority *priority, void *data,
			     size_t room_bytes, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = end_monotonic_ns() + timeout_ns;
	struct rtdip_message message;
	int err;

	do
		err = rtdip_receive(end->handle, &message, data, room_bytes, end->busy ? 0 : timeout_ns);
	while (err == -ETIMEDOUT && end->busy && end_monotonic_ns() < deadline_monotonic_ns);
	if (err)
		return err;
	from->rtdip = message.from;
	*priority = message.priority;
	return (int64_t)message.size_bytes;
}

static int64_t receive_udp(struct end *end, struct peer *from, void *data, size_t room_bytes, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = end_monotonic_ns() + timeout_ns;
	struct sockaddr_in place;
	socklen_t place_bytes = sizeof(place);
	ssize_t length;

	for (;;) {
		const struct timespec timeout = { timeout_ns / NS_PER_S, timeout_ns % NS_PER_S };
		struct pollfd ready = { .fd = end->sock, .events = POLLIN };

		length = recvfrom(end->sock, data, room_bytes, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&place,
				  &place_bytes);
		if (length >= 0)
			break;
		if (errno != EAGAIN)
			return -errno;
		if (end->busy ? end_monotonic_ns() > deadline_monotonic_ns : ppoll(&ready, 1, &timeout, NULL) == 0)
			return -ETIMEDOUT;
		if (!end->busy && !ready.revents)
			return -EINTR;
	}
	from->udp = (struct address){ ntohl(place.sin_addr.s_addr), ntohs(place.sin_port) };
	return length;
}

int64_t end_receive(struct end *end, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes,
		    int64_t timeout_ns)
{
	*priority = RTDIP_HIGH;
	return end->handle ? receive_rtdip(end, from, priority, data, room_bytes, timeout_ns)
			   : receive_udp(end, from, data, room_bytes, timeout_ns);
}
