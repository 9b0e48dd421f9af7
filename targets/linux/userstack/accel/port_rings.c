/* SPDX-License-Identifier: Apache-2.0 */
#include "port_rings.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "port_libc.h"
#include "service/stackd.h"

#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0) /* Linux 6.6 */
#endif

enum { JOINED_MAX_BYTES = 65536 + 64, KICKS_MAX = 256 };

static uint32_t load(const uint32_t *index)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *index, uint32_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

static struct xdp_desc *descriptor(const struct ring *ring, uint32_t place)
{
	return (struct xdp_desc *)ring->entries + (place & (ring->size - 1));
}

static uint64_t *address(const struct ring *ring, uint32_t place)
{
	return (uint64_t *)ring->entries + (place & (ring->size - 1));
}

static int map_ring(struct ring *ring, int fd, uint64_t page, const struct xdp_ring_offset *offset, uint32_t size,
		    size_t entry_bytes)
{
	uint8_t *map;

	ring->map_bytes = offset->desc + size * entry_bytes;
	map = mmap64(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off64_t)page);
	if (map == MAP_FAILED)
		return -errno;
	ring->map = map;
	ring->producer = (uint32_t *)(void *)(map + offset->producer);
	ring->consumer = (uint32_t *)(void *)(map + offset->consumer);
	ring->flags = (uint32_t *)(void *)(map + offset->flags);
	ring->entries = map + offset->desc;
	ring->size = size;
	return 0;
}

static int map_rings(struct rings *rings, const struct stackd_answer *hello)
{
	struct xdp_mmap_offsets offsets;
	socklen_t length = sizeof(offsets);
	int err;

	if (libc_calls()->getsockopt(rings->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length))
		return -errno;
	if (length != sizeof(offsets))
		return -EPROTO;
	err = map_ring(&rings->receive, rings->fd, XDP_PGOFF_RX_RING, &offsets.rx, hello->receive_ring, sizeof(struct xdp_desc));
	if (!err)
		err = map_ring(&rings->transmit, rings->fd, XDP_PGOFF_TX_RING, &offsets.tx, hello->transmit_ring,
			       sizeof(struct xdp_desc));
	if (!err)
		err = map_ring(&rings->fill, rings->fd, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, hello->fill_ring, sizeof(uint64_t));
	if (!err)
		err = map_ring(&rings->completion, rings->fd, XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, hello->completion_ring,
			       sizeof(uint64_t));
	return err;
}

/* The first frames are for what comes, as many as the kernel can be given; those behind them for what is sent. */
static int share_out(struct rings *rings, const struct stackd_answer *hello)
{
	uint32_t receive = hello->frames / 2 < hello->fill_ring ? hello->frames / 2 : hello->fill_ring;

	rings->spare = calloc(hello->frames - receive, sizeof(*rings->spare));
	rings->joined = malloc(JOINED_MAX_BYTES);
	if (!rings->spare || !rings->joined)
		return -ENOMEM;
	for (uint32_t i = 0; i < receive; i++)
		*address(&rings->fill, i) = (uint64_t)i * hello->frame_bytes;
	rings->fill.own = receive;
	store(rings->fill.producer, receive);
	for (uint32_t i = hello->frames; i > receive; i--)
		rings->spare[rings->spare_count++] = (uint64_t)(i - 1) * hello->frame_bytes;
	return 0;
}

int rings_open(struct rings *rings, int fd, int memory, const struct stackd_answer *hello)
{
	void *map;
	int err;

	*rings = (struct rings){ .fd = fd, .frame_bytes = hello->frame_bytes };
	rings->memory_bytes = (size_t)hello->frames * hello->frame_bytes;
	map = mmap(NULL, rings->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (map == MAP_FAILED)
		return -errno;
	rings->memory = map;
	err = map_rings(rings, hello);
	if (!err)
		err = share_out(rings, hello);
	if (err) {
		rings->fd = -1;
		rings_close(rings);
	}
	return err;
}

void rings_close(struct rings *rings)
{
	struct ring *all[] = { &rings->receive, &rings->transmit, &rings->fill, &rings->completion };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i]->map)
			munmap(all[i]->map, all[i]->map_bytes);
	}
	if (rings->memory)
		munmap(rings->memory, rings->memory_bytes);
	if (rings->fd >= 0)
		libc_calls()->close(rings->fd);
	free(rings->spare);
	free(rings->joined);
	*rings = (struct rings){ .fd = -1 };
}

bool rings_waiting(const struct rings *rings)
{
	return load(rings->receive.producer) != rings->receive.own;
}

/* Give a frame back to the kernel to receive in: there is always room, as no more frames go round than the ring holds. */
static void refill(struct rings *rings, uint64_t frame)
{
	*address(&rings->fill, rings->fill.own++) = frame - frame % rings->frame_bytes;
}

/* Whether all buffers of the frame that begins at `place` are there. *buffers: how many. */
static bool is_whole(const struct rings *rings, uint32_t place, uint32_t end, uint32_t *buffers)
{
	for (*buffers = 1; place != end; place++, (*buffers)++) {
		if (!(descriptor(&rings->receive, place)->options & XDP_PKT_CONTD))
			return true;
	}
	return false;
}

static void take_one(struct rings *rings, uint32_t buffers, void (*take)(const uint8_t *frame, size_t size_bytes))
{
	const struct xdp_desc *first = descriptor(&rings->receive, rings->receive.own);
	size_t used = 0;

	if (buffers == 1) {
		take(rings->memory + first->addr, first->len);
	} else {
		for (uint32_t i = 0; i < buffers; i++) {
			const struct xdp_desc *each = descriptor(&rings->receive, rings->receive.own + i);
			size_t room = JOINED_MAX_BYTES - used, size = each->len < room ? each->len : room;

			memcpy(rings->joined + used, rings->memory + each->addr, size);
			used += size;
		}
		take(rings->joined, used);
	}
	for (uint32_t i = 0; i < buffers; i++)
		refill(rings, descriptor(&rings->receive, rings->receive.own + i)->addr);
	rings->receive.own += buffers;
	rings->frames_in++;
}

unsigned int rings_receive(struct rings *rings, void (*take)(const uint8_t *frame, size_t size_bytes), unsigned int most)
{
	uint32_t end = load(rings->receive.producer), buffers;
	unsigned int count = 0;

	while (count < most && rings->receive.own != end && is_whole(rings, rings->receive.own, end, &buffers)) {
		take_one(rings, buffers, take);
		count++;
	}
	if (count) {
		store(rings->receive.consumer, rings->receive.own);
		store(rings->fill.producer, rings->fill.own);
	}
	return count;
}

/* Take back the frames that have been sent. */
static void reclaim(struct rings *rings)
{
	uint32_t end = load(rings->completion.producer);

	if (rings->completion.own == end)
		return;
	while (rings->completion.own != end)
		rings->spare[rings->spare_count++] = *address(&rings->completion, rings->completion.own++);
	store(rings->completion.consumer, rings->completion.own);
}

static bool has_room(struct rings *rings, uint32_t buffers)
{
	reclaim(rings);
	return rings->spare_count >= buffers &&
	       rings->transmit.size - (rings->transmit.own - load(rings->transmit.consumer)) >= buffers;
}

/* Copy from the two parts of a frame. */
static void gather(uint8_t *to, size_t at, size_t size, const void *header, size_t header_bytes, const void *packet)
{
	if (at < header_bytes) {
		size_t here = size < header_bytes - at ? size : header_bytes - at;

		memcpy(to, (const uint8_t *)header + at, here);
		to += here;
		at += here;
		size -= here;
	}
	memcpy(to, (const uint8_t *)packet + (at - header_bytes), size);
}

void rings_send(struct rings *rings, const void *header, size_t header_bytes, const void *packet, size_t packet_bytes)
{
	size_t whole = header_bytes + packet_bytes;
	uint32_t buffers = (uint32_t)((whole + rings->frame_bytes - 1) / rings->frame_bytes);

	if (!has_room(rings, buffers)) {
		rings_flush(rings);
		if (!has_room(rings, buffers)) {
			rings->full++;
			return;
		}
	}
	for (size_t at = 0; at < whole; at += rings->frame_bytes) {
		struct xdp_desc *each = descriptor(&rings->transmit, rings->transmit.own++);
		size_t size = whole - at < rings->frame_bytes ? whole - at : rings->frame_bytes;

		each->addr = rings->spare[--rings->spare_count];
		each->len = (uint32_t)size;
		each->options = at + size < whole ? XDP_PKT_CONTD : 0;
		gather(rings->memory + each->addr, at, size, header, header_bytes, packet);
	}
	store(rings->transmit.producer, rings->transmit.own);
	rings->frames_out++;
	rings->kick = true;
}

void rings_flush(struct rings *rings)
{
	if (!rings->kick)
		return;
	/* A call takes a number of frames at most, and says so by EAGAIN; of another error the frames stay there until the next. */
	for (int i = 0; i < KICKS_MAX; i++) {
		if (libc_calls()->sendto(rings->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN && errno != EINTR)
			break;
		if (load(rings->transmit.consumer) == rings->transmit.own) {
			rings->kick = false;
			break;
		}
	}
}

bool rings_unsent(const struct rings *rings)
{
	return rings->kick;
}
