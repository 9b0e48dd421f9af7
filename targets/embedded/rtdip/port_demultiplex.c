/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demultiplexing at the driver: a frame of RTDiP goes into the ring of its port, and nothing more is done with it there. Whatever
 * is not RTDiP goes on to the kernel untouched.
 *
 * One program without calls of sub-programs or kernel functions, so that the interpreter of a 32-bit ARM runs it, too. Compiled
 * for BPF; targets/linux/bpf/bpf_object.py makes its instructions a header. It needs Linux 5.18 (bpf_xdp_load_bytes, frames of several buffers).
 */
#include <linux/bpf.h>

#include "frame.h"

#define SECTION(name) __attribute__((section(name), used))
#define ALWAYS_INLINE static __attribute__((always_inline)) inline

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK16(value) __builtin_bswap16(value)
#else
#define NETWORK16(value) (value)
#endif

/* Helpers of the kernel, by their numbers. */
static void *(*const map_lookup)(const void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static uint64_t (*const ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static void *(*const ring_reserve)(void *ring, uint64_t bytes, uint64_t flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*const ring_submit)(void *record, uint64_t flags) = (void *)BPF_FUNC_ringbuf_submit;
static void (*const ring_discard)(void *record, uint64_t flags) = (void *)BPF_FUNC_ringbuf_discard;
static uint64_t (*const frame_bytes)(struct xdp_md *frame) = (void *)BPF_FUNC_xdp_get_buff_len;
static long (*const load_bytes)(struct xdp_md *frame, uint64_t offset, void *to, uint64_t bytes) =
	(void *)BPF_FUNC_xdp_load_bytes;

/* Stand for the maps, which port_xdp.c makes; the names are what it knows them by. */
SECTION("maps") char ports, port_counts, counts, address;

struct wire_header {
	uint16_t destination_port;
	uint8_t priority, version;
	uint16_t length_bytes, source_port;
	uint32_t sequence;
};

ALWAYS_INLINE int count(uint32_t what)
{
	uint64_t *counter = map_lookup(&counts, &what);

	if (counter)
		(*counter)++; /* one for each processor */
	return XDP_DROP;
}

/* Frames for others come here, too, where a switch does not know them yet. */
ALWAYS_INLINE int is_for_us(const uint8_t *destination)
{
	const uint32_t first = 0;
	const uint16_t *own = map_lookup(&address, &first), *to = (const uint16_t *)destination;

	return (destination[0] & 1) || (own && own[0] == to[0] && own[1] == to[1] && own[2] == to[2]);
}

/* A record's size has to be known when the program is checked: one of four. */
#define DELIVER(room_bytes) do { \
		uint8_t *record = ring_reserve(ring, sizeof(struct rtdip_record) + (room_bytes), 0); \
		if (!record) \
			goto full; \
		*(struct rtdip_record *)record = about; \
		if (load_bytes(context, RTDIP_ETHERNET_BYTES, record + sizeof(struct rtdip_record), payload_bytes)) { \
			ring_discard(record, 0); \
			return count(RTDIP_SHORT); \
		} \
		ring_submit(record, 0); \
	} while (0)

SECTION("xdp") int demultiplex(struct xdp_md *context)
{
	const uint8_t *data = (const uint8_t *)(long)context->data, *end = (const uint8_t *)(long)context->data_end;
	const struct wire_header *header = (const void *)(data + RTDIP_ETHERNET_BYTES);
	struct rtdip_record about = { 0 };
	struct rtdip_port_counts *of_port;
	uint64_t payload_bytes;
	uint16_t port;
	void *ring;

	if (data + RTDIP_ETHERNET_BYTES > end || *(const uint16_t *)(data + 12) != NETWORK16(RTDIP_ETHERTYPE))
		return XDP_PASS;
	if (!is_for_us(data))
		return XDP_PASS;
	if ((const uint8_t *)(header + 1) > end)
		return count(RTDIP_SHORT);
	payload_bytes = NETWORK16(header->length_bytes) + RTDIP_HEADER_BYTES;
	port = header->destination_port;
	if (header->version != RTDIP_VERSION || header->priority >= RTDIP_PRIORITIES || port == 0 ||
	    payload_bytes > RTDIP_PAYLOAD_MAX_BYTES)
		return count(RTDIP_MALFORMED);
	if (payload_bytes > frame_bytes(context) - RTDIP_ETHERNET_BYTES) /* data to end is but the first buffer of a large one */
		return count(RTDIP_SHORT);
	ring = map_lookup(&ports, &port);
	of_port = map_lookup(&port_counts, &port);
	if (!ring || !of_port)
		return count(RTDIP_NO_PORT);
	about.received_monotonic_ns = ktime_get_ns();
	about.payload_bytes = (uint16_t)payload_bytes;
	__builtin_memcpy(about.source, data + RTDIP_MAC_BYTES, RTDIP_MAC_BYTES);
	/* The checker has to see the length in the same register at the test and at the call. */
	__asm__ volatile("" : "+r"(payload_bytes));
	if (payload_bytes < RTDIP_HEADER_BYTES)
		return count(RTDIP_MALFORMED);
	if (payload_bytes <= 64)
		DELIVER(64);
	else if (payload_bytes <= 256)
		DELIVER(256);
	else if (payload_bytes <= 1504)
		DELIVER(1504);
	else if (payload_bytes <= RTDIP_PAYLOAD_MAX_BYTES)
		DELIVER(RTDIP_PAYLOAD_MAX_BYTES);
	else
		return count(RTDIP_MALFORMED);
	__sync_fetch_and_add(&of_port->frames, 1);
	__sync_fetch_and_add(&of_port->bytes, payload_bytes - RTDIP_HEADER_BYTES);
	return count(RTDIP_DELIVERED);
full:
	__sync_fetch_and_add(&of_port->full, 1);
	return count(RTDIP_FULL);
}
