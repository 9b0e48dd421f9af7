/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel knows of Ethernet addresses. */
#include "rtdip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Let the kernel ask for a neighbour: an empty datagram for it, to the port that discards. */
static void ask_for_neighbour(uint32_t ipv4)
{
	const struct sockaddr_in place = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(ipv4),
	};
	int asking = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (asking < 0)
		return;
	if (sendto(asking, NULL, 0, MSG_NOSIGNAL, (const struct sockaddr *)&place, sizeof(place)) < 0) {
		/* There is no way to it: it stays unknown, and who asks says so in the end. */
	}
	close(asking);
}

int rtdip_resolve(uint32_t ipv4, uint8_t mac[RTDIP_MAC_BYTES])
{
	FILE *neighbours = fopen("/proc/net/arp", "re");
	char line[256], place[64], text[64];
	unsigned int flags;
	int err = -EAGAIN;

	if (!neighbours)
		return -errno;
	while (err && fgets(line, sizeof(line), neighbours)) {
		struct in_addr address;

		if (sscanf(line, "%63s 0x%*x 0x%x %63s", place, &flags, text) != 3 || inet_aton(place, &address) == 0 ||
		    ntohl(address.s_addr) != ipv4 || !(flags & ATF_COM))
			continue;
		err = rtdip_parse_mac(text, mac) < 0 ? -EAGAIN : 0;
	}
	fclose(neighbours);
	if (err)
		ask_for_neighbour(ipv4);
	return err;
}
