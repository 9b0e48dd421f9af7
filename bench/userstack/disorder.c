/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between two interfaces that sends some frames twice, and lets some be overtaken: `disorder ONE OTHER DUPLICATE_PPM
 * REORDER_PPM SEED`. A frame that is overtaken waits for the next three the same way, or for a millisecond. At SIGTERM it prints
 * what it did, as JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_BYTES = 65536, BATCH = 64, OVERTAKEN_BY = 3, HOLD_MS = 1, BUFFER_BYTES = 64 << 20 };

#define PPM UINT64_C(1000000)

static volatile sig_atomic_t ends;
static uint64_t state, duplicate, reorder, relayed, duplicated, reordered;

struct way {
	int from, to;
	uint8_t held[FRAME_BYTES];
	size_t held_bytes; /* 0: none */
	int overtaken;
};

static void end(int number)
{
	(void)number;
	ends = 1;
}

static int by_chance(uint64_t of_ppm)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 32) * PPM >> 32 < of_ppm;
}

static int open_on(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = BUFFER_BYTES;

	if (fd < 0 || !address.sll_ifindex || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) || setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		perror(interface);
		exit(3);
	}
	return fd;
}

static void put(const struct way *way, const void *frame, size_t size)
{
	if (send(way->to, frame, size, 0) < 0 && errno != ENOBUFS && errno != EAGAIN)
		perror("send");
}

static void release(struct way *way)
{
	put(way, way->held, way->held_bytes);
	way->held_bytes = 0;
}

static int relay(struct way *way)
{
	static uint8_t frame[FRAME_BYTES];
	int count = 0;

	for (; count < BATCH; count++) {
		ssize_t size = recv(way->from, frame, sizeof(frame), MSG_DONTWAIT);

		if (size <= 0)
			break;
		relayed++;
		if (!way->held_bytes && by_chance(reorder)) {
			memcpy(way->held, frame, (size_t)size);
			way->held_bytes = (size_t)size;
			way->overtaken = 0;
			reordered++;
			continue;
		}
		put(way, frame, (size_t)size);
		if (by_chance(duplicate)) {
			put(way, frame, (size_t)size);
			duplicated++;
		}
		if (way->held_bytes && ++way->overtaken == OVERTAKEN_BY)
			release(way);
	}
	return count;
}

int main(int argc, char **argv)
{
	static struct way ways[2];
	struct pollfd fds[2];

	if (argc != 6)
		return 2;
	duplicate = strtoull(argv[3], NULL, 10);
	reorder = strtoull(argv[4], NULL, 10);
	state = strtoull(argv[5], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) | 1;
	ways[0].from = ways[1].to = open_on(argv[1]);
	ways[1].from = ways[0].to = open_on(argv[2]);
	for (int i = 0; i < 2; i++)
		fds[i] = (struct pollfd){ .fd = ways[i].from, .events = POLLIN };
	signal(SIGTERM, end);
	signal(SIGINT, end);
	printf("ready\n");
	fflush(stdout);
	while (!ends) {
		int held = ways[0].held_bytes || ways[1].held_bytes;

		if (relay(&ways[0]) + relay(&ways[1]))
			continue;
		if (poll(fds, 2, held ? HOLD_MS : -1) == 0) {
			for (int i = 0; i < 2; i++) {
				if (ways[i].held_bytes)
					release(&ways[i]);
			}
		}
	}
	printf("{\"relayed\":%llu,\"duplicated\":%llu,\"reordered\":%llu}\n", (unsigned long long)relayed, (unsigned long long)duplicated,
	       (unsigned long long)reordered);
	return 0;
}
