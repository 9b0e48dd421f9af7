/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between two interfaces that sends some frames twice, and lets some be overtaken: `disorder ONE OTHER DUPLICATE_PPM
 * REORDER_PPM SEED`. A frame that is overtaken waits for the next three the same way, or for a millisecond. At SIGTERM it prints
 * what it did, as JSON.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "relay.h"

enum { FRAME_BYTES = 65536, BATCH = 64, OVERTAKEN_BY = 3, HOLD_MS = 1 };

#define PPM UINT64_C(1000000)

static uint64_t state, duplicate, reorder, relayed, duplicated, reordered;

struct way {
	int from, to;
	uint8_t held[FRAME_BYTES];
	size_t held_bytes; /* 0: none */
	int overtaken;
};

static int by_chance(uint64_t of_ppm)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 32) * PPM >> 32 < of_ppm;
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
	open_relay(argv + 1, fds);
	for (int i = 0; i < 2; i++)
		ways[i].from = ways[!i].to = fds[i].fd;
	while (!relay_ends) {
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
