/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

/* A bounded queue of many producers by a turn for each slot, as D. Vyukov has described it. */

void ring_begin(struct watch_ring *ring)
{
	ring->put_place = ring->take_place = ring->lost_count = 0;
	for (uint64_t i = 0; i < WATCH_SLOTS; i++)
		ring->slots[i].turn = i;
}

bool ring_put(struct watch_ring *ring, const struct watch_event *event)
{
	uint64_t place = __atomic_load_n(&ring->put_place, __ATOMIC_RELAXED);

	for (;;) {
		struct watch_slot *slot = &ring->slots[place % WATCH_SLOTS];
		int64_t ahead = (int64_t)(__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) - place);

		if (ahead < 0) {
			__atomic_add_fetch(&ring->lost_count, 1, __ATOMIC_RELAXED);
			return false;
		}
		if (ahead > 0) {
			place = __atomic_load_n(&ring->put_place, __ATOMIC_RELAXED);
		} else if (__atomic_compare_exchange_n(&ring->put_place, &place, place + 1, true, __ATOMIC_RELAXED,
						       __ATOMIC_RELAXED)) {
			slot->event = *event;
			__atomic_store_n(&slot->turn, place + 1, __ATOMIC_RELEASE);
			return true;
		}
	}
}

static void free_slot(struct watch_ring *ring, struct watch_slot *slot)
{
	__atomic_store_n(&slot->turn, ring->take_place + WATCH_SLOTS, __ATOMIC_RELEASE);
	ring->take_place++;
}

bool ring_take(struct watch_ring *ring, struct watch_event *event)
{
	struct watch_slot *slot = &ring->slots[ring->take_place % WATCH_SLOTS];

	if (__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) != ring->take_place + 1)
		return false;
	*event = slot->event;
	free_slot(ring, slot);
	return true;
}

bool ring_skip_hole(struct watch_ring *ring)
{
	struct watch_slot *slot = &ring->slots[ring->take_place % WATCH_SLOTS];

	if (__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) != ring->take_place ||
	    __atomic_load_n(&ring->put_place, __ATOMIC_ACQUIRE) == ring->take_place)
		return false;
	__atomic_add_fetch(&ring->lost_count, 1, __ATOMIC_RELAXED);
	free_slot(ring, slot);
	return true;
}
