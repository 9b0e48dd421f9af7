/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: what the library of RTDiP reads. A frame is refused, or its header is made of the same bytes again; out of a
 * ring, as the kernel writes it, frames come by priority, whole, and all that are sound.
 */
#define _GNU_SOURCE

#include "../traffic_gen/fuzz.h"
#include "port_rtdip.c" /* its rings and queues are no business of others */

enum { PORT = 7000, RING_BYTES = 32768, ROOM_BYTES = 64 };
enum { READ_ALL = 0x8000, READ_ONE = 0x4000, DISCARD = 0x2000, LENGTH = 0x1fff }; /* of the two bytes before each frame */

static uint8_t *kernel; /* reader's page, writer's page, data twice over */
static size_t page;
static uint64_t written, taken, last[RTDIP_PRIORITIES]; /* frames, numbered from 1 by their stamps */

static struct rtdip *open_ring(void)
{
	static struct rtdip *handle;
	struct ring *ring;
	int memory;

	if (handle)
		return handle;
	handle = calloc(1, sizeof(*handle));
	page = (size_t)sysconf(_SC_PAGESIZE);
	memory = memfd_create("ring", 0);
	promise(handle && memory >= 0 && ftruncate(memory, (off_t)(2 * page + RING_BYTES)) == 0);
	kernel = mmap(NULL, 2 * page + 2 * (size_t)RING_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mmap(kernel, 2 * page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0);
	mmap(kernel + 2 * page + RING_BYTES, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, (off_t)(2 * page));
	ring = &handle->rings[0];
	*ring = (struct ring){ .port = PORT, .bytes = RING_BYTES, .read_at = (void *)kernel,
			       .written_to = (void *)(kernel + page), .data = kernel + 2 * page };
	handle->ring_count = 1;
	promise(fit_queues(handle) == 0);
	return handle;
}

/* Put a frame's payload into the ring. Return false where it is full. */
static int write_frame(const uint8_t *payload, uint16_t payload_bytes, uint32_t flags)
{
	unsigned long *read_at = (void *)kernel, *written_to = (void *)(kernel + page);
	const struct rtdip_record about = { .received_monotonic_ns = written + 1, .payload_bytes = payload_bytes };
	size_t bytes = sizeof(about) + payload_bytes, whole = queue_aligned(bytes + BPF_RINGBUF_HDR_SZ);
	uint8_t *head = kernel + 2 * page + (*written_to & (RING_BYTES - 1));

	if (*written_to + whole - *read_at > RING_BYTES)
		return 0;
	*(uint32_t *)(void *)head = (uint32_t)bytes | flags;
	memcpy(head + BPF_RINGBUF_HDR_SZ, &about, sizeof(about));
	memcpy(head + BPF_RINGBUF_HDR_SZ + sizeof(about), payload, payload_bytes);
	*written_to += whole;
	written++;
	return 1;
}

/* Read a header of exactly so many bytes. Return whether it is sound. */
static int read_header(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1), again[RTDIP_HEADER_BYTES];
	struct rtdip_header header;
	int err;

	memcpy(exact, data, size);
	err = rtdip_parse(exact, (uint32_t)size, &header);
	promise(err == 0 || err == -EMSGSIZE || err == -EBADMSG);
	if (!err) {
		rtdip_pack(&header, again);
		promise(memcmp(exact, again, sizeof(again)) == 0 && header.length_bytes + RTDIP_HEADER_BYTES <= (int)size);
	}
	free(exact);
	return err == 0;
}

/* Take so many frames, or what is there. What is overwritten has no stamp, or not the next of its priority. */
static void take(struct rtdip *handle, uint64_t count)
{
	struct rtdip_message message;
	uint8_t room[ROOM_BYTES];

	while (count-- && rtdip_receive(handle, &message, room, sizeof(room), 0) == 0) {
		uint64_t stamp = (uint64_t)message.received_monotonic_ns;

		promise(message.priority < RTDIP_PRIORITIES && message.to_port != 0 && message.size_bytes <= RTDIP_DATA_MAX_BYTES);
		promise(stamp > last[message.priority] && stamp <= written);
		for (int i = 0; i < (int)message.priority; i++)
			promise(handle->queues[i].begin == handle->queues[i].end);
		last[message.priority] = stamp;
		taken++;
	}
}

static void read_mac(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	uint8_t mac[RTDIP_MAC_BYTES];
	int used = rtdip_parse_mac(text, mac);

	promise(used == -EINVAL || (used > 0 && (size_t)used <= strlen(text)));
	free(text);
}

/* Frames, before each of them two bytes: what to do first, its length. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rtdip *handle = open_ring();
	uint64_t due = 0, unheard = handle->counts.unheard;

	taken = 0;
	read_mac(data, size);
	while (size >= 2) {
		uint32_t first = (uint32_t)data[0] << 8 | data[1], flags = first & DISCARD ? BPF_RINGBUF_DISCARD_BIT : 0;
		size_t length = first & LENGTH;
		int sound;

		length = length < size - 2 ? length : size - 2;
		length = length < RTDIP_PAYLOAD_MAX_BYTES ? length : RTDIP_PAYLOAD_MAX_BYTES;
		if (first & (READ_ALL | READ_ONE))
			take(handle, first & READ_ALL ? UINT64_MAX : 1);
		sound = read_header(data + 2, length);
		/* The program lets none through that is shorter than a header. */
		if (length >= RTDIP_HEADER_BYTES && write_frame(data + 2, (uint16_t)length, flags) && !flags)
			due += (uint64_t)sound;
		data += 2 + length;
		size -= 2 + length;
	}
	take(handle, UINT64_MAX);
	unheard = handle->counts.unheard - unheard; /* unsound ones, too */
	promise(taken <= due && taken + unheard >= due);
	return 0;
}
