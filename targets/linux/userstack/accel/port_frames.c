/* SPDX-License-Identifier: Apache-2.0 */
#include "port_frames.h"

#include <string.h>

#include "core/stack.h"
#include "port_clocks.h"
#include "port_interface.h"
#include "port_rings.h"

enum {
	TURN_FRAMES = 16, TURN_US = 100, KICK_AGAIN_US = 500, KICK_PAUSE_MAX_US = 100000,
	ETHERNET_BYTES = 14, TYPE_AT = 12, TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86DD,
};

static struct rings rings = { .fd = -1 };
static uint64_t unsent_since_us; /* the kernel does not take what was made; 0: it does */
static bool stamps; /* a socket has asked for them: from then on as long as the program runs */

int frames_begin(int packets, int memory, const struct stackd_answer *hello)
{
	return rings_open(&rings, packets, memory, hello);
}

void frames_end(void)
{
	rings.fd = -1;
	rings_close(&rings);
}

int frames_fd(void)
{
	return rings.fd;
}

const struct rings *frames_rings(void)
{
	return &rings;
}

void frames_stamp(void)
{
	stamps = true;
}

static void take_frame(const uint8_t *frame, size_t size_bytes)
{
	/* Nothing but IP comes: the service's program sees to it. */
	if (size_bytes <= ETHERNET_BYTES)
		return;
	if (stamps) /* each frame: one that was handled meanwhile takes its time */
		stack_set_arrival(clocks_realtime_ns());
	stack_input(frame + ETHERNET_BYTES, size_bytes - ETHERNET_BYTES);
}

static unsigned int take_frames(void)
{
	unsigned int count;

	stack_input_begin();
	count = rings_receive(&rings, take_frame, TURN_FRAMES);
	stack_input_end();
	return count;
}

bool frames_waiting(void)
{
	return rings_waiting(&rings);
}

void frames_take(uint64_t now_us)
{
	while (rings_waiting(&rings) && take_frames()) {
		rings_flush(&rings);
		if (clocks_now_us() - now_us >= TURN_US)
			break;
	}
}

void frames_send(const uint8_t mac[NEIGHBOUR_MAC_BYTES], const uint8_t *packet, size_t packet_bytes)
{
	uint8_t header[ETHERNET_BYTES];
	uint16_t type = packet[0] >> 4 == 6 ? TYPE_IPV6 : TYPE_IPV4;

	memcpy(header, mac, NEIGHBOUR_MAC_BYTES);
	memcpy(header + NEIGHBOUR_MAC_BYTES, interface_mac(), NEIGHBOUR_MAC_BYTES);
	header[TYPE_AT] = (uint8_t)(type >> 8);
	header[TYPE_AT + 1] = (uint8_t)type;
	rings_send(&rings, header, sizeof(header), packet, packet_bytes);
}

void frames_flush(void)
{
	rings_flush(&rings);
}

uint64_t frames_again_us(void)
{
	uint64_t now_us, pause_us;

	if (!rings_unsent(&rings)) {
		unsent_since_us = 0;
		return UINT64_MAX;
	}
	now_us = clocks_now_us();
	if (!unsent_since_us)
		unsent_since_us = now_us;
	pause_us = (now_us - unsent_since_us) / 2;
	pause_us = pause_us < KICK_AGAIN_US ? KICK_AGAIN_US : pause_us > KICK_PAUSE_MAX_US ? KICK_PAUSE_MAX_US : pause_us;
	return now_us + pause_us;
}
