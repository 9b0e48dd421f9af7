/* SPDX-License-Identifier: Apache-2.0 */
/* What relays between two interfaces share: both open for frames, and a SIGTERM or SIGINT that ends them. */
#ifndef BW_BENCH_RELAY_H
#define BW_BENCH_RELAY_H

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static volatile sig_atomic_t relay_ends;

static void end_relay(int number)
{
	(void)number;
	relay_ends = 1;
}

/* Return a socket that receives what comes by an interface alone, and sends without its qdisc. Ends the program with 3. */
static int open_on(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = 64 << 20;

	if (fd < 0 || !address.sll_ifindex || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) || setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		perror(interface);
		exit(3);
	}
	return fd;
}

/* Open both interfaces, then say that frames are handed on. */
static void open_relay(char *const interfaces[2], struct pollfd fds[2])
{
	for (int i = 0; i < 2; i++)
		fds[i] = (struct pollfd){ .fd = open_on(interfaces[i]), .events = POLLIN };
	signal(SIGTERM, end_relay);
	signal(SIGINT, end_relay);
	printf("ready\n");
	fflush(stdout);
}

#endif
