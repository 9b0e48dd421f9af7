/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between two interfaces that hands each frame on so many microseconds after it came: `delay ONE OTHER DELAY_US`. What does not
 * fit into its memory is lost. At SIGTERM it prints what it did, as JSON.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>

#include "relay.h"

enum { FRAME_BYTES = 2048, FRAMES = 16384, BATCH = 64, SLACK_NS = 1000 };

#define NS_PER_US INT64_C(1000)
#define NS_PER_S INT64_C(1000000000)

static int64_t delay_ns;
static uint64_t relayed, lost;

/* A ring of what waits, in the order in which it came. */
struct way {
	int from, to;
	uint64_t first, next;
	struct {
		int64_t due_monotonic_ns;
		size_t bytes;
		uint8_t frame[FRAME_BYTES];
	} waiting[FRAMES];
};

static int64_t now_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void take(struct way *way)
{
	static uint8_t none[FRAME_BYTES];

	for (int count = 0; count < BATCH; count++) {
		bool full = way->next - way->first == FRAMES;
		uint64_t place = way->next % FRAMES;
		ssize_t bytes = recv(way->from, full ? none : way->waiting[place].frame, FRAME_BYTES, MSG_DONTWAIT);

		if (bytes <= 0)
			return;
		if (full) {
			lost++;
			continue;
		}
		way->waiting[place].due_monotonic_ns = now_monotonic_ns() + delay_ns;
		way->waiting[place].bytes = (size_t)bytes;
		way->next++;
	}
}

/* Hand on what is due. Return when the next one is, INT64_MAX: nothing waits. */
static int64_t hand_on(struct way *way)
{
	for (; way->first < way->next; way->first++) {
		uint64_t place = way->first % FRAMES;

		if (way->waiting[place].due_monotonic_ns > now_monotonic_ns())
			return way->waiting[place].due_monotonic_ns;
		if (send(way->to, way->waiting[place].frame, way->waiting[place].bytes, 0) < 0)
			lost++;
		relayed++;
	}
	return INT64_MAX;
}

int main(int argc, char **argv)
{
	static struct way ways[2];
	struct pollfd fds[2];

	if (argc != 4)
		return 2;
	delay_ns = strtoll(argv[3], NULL, 10) * NS_PER_US;
	open_relay(argv + 1, fds);
	for (int i = 0; i < 2; i++)
		ways[i].from = ways[!i].to = fds[i].fd;
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	while (!relay_ends) {
		int64_t next_monotonic_ns = INT64_MAX, left_ns;

		for (int i = 0; i < 2; i++) {
			int64_t due_monotonic_ns;

			take(&ways[i]);
			due_monotonic_ns = hand_on(&ways[i]);
			if (due_monotonic_ns < next_monotonic_ns)
				next_monotonic_ns = due_monotonic_ns;
		}
		left_ns = next_monotonic_ns - now_monotonic_ns();
		if (left_ns > 0) {
			struct timespec left = { left_ns / NS_PER_S, left_ns % NS_PER_S };

			ppoll(fds, 2, next_monotonic_ns == INT64_MAX ? NULL : &left, NULL);
		}
	}
	printf("{\"relayed\":%llu,\"lost\":%llu}\n", (unsigned long long)relayed, (unsigned long long)lost);
	return 0;
}
