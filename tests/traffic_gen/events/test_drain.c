/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected of a ring: what is finished, in any lap; and files of rings that anybody may have written. */
#define _GNU_SOURCE /* mkdtemp */
#include <errno.h>
#include <stdlib.h>

#include "../check.h"
#include "../random.h"
#include "events/drain.h"

enum { SLOTS = EVENTS_SLOTS_MIN };

static const struct bw_point_description descriptions[] = {
	{ "group", "event", "", "", BW_POINT_EVENT, 0, 0, 0 },
	{ "group", "spread", "", "", BW_POINT_HISTOGRAM, 5, -10, 10 },
};

static struct events_header header_of(void)
{
	struct events_header header = { .pid = 1, .counter_kind = 1, .point_count = 2, .stream_count = 1, .ring_count = 1 };

	strcpy(header.program, "test");
	strcpy(header.streams[0].name, "all");
	header.streams[0].ring_slots = SLOTS;
	CHECK_INT(events_layout(&header, descriptions), 0);
	return header;
}

/* A file of rings in memory, with nothing in them; the caller frees it. */
static uint8_t *made_rings(size_t *size_bytes)
{
	struct events_header header = header_of();
	uint8_t *bytes = calloc(1, header.size_bytes);

	if (!bytes)
		abort();
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + header.descriptions_at, descriptions, sizeof(descriptions));
	*size_bytes = header.size_bytes;
	return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size_bytes)
{
	FILE *file = fopen(path, "wb");

	CHECK(file && fwrite(bytes, size_bytes, 1, file) == 1);
	if (file)
		fclose(file);
}

/* Finish an event at a position; it has no bytes. */
static void finish(struct events_slot *slots, uint64_t position)
{
	struct events_slot *slot = &slots[position % SLOTS];

	memset(slot, 0, sizeof(*slot));
	slot->tag = (int64_t)position;
	slot->commit = events_commit(position, true);
}

/* Open empty rings of a name; returns their slots. */
static struct events_slot *opened_rings(const char *folder, const char *name, struct drain *drain)
{
	char path[PORT_EVENTS_PATH_BYTES];
	size_t size_bytes;
	uint8_t *bytes = made_rings(&size_bytes);

	snprintf(path, sizeof(path), "%s/%s" EVENTS_RINGS_SUFFIX, folder, name);
	write_file(path, bytes, size_bytes);
	free(bytes);
	CHECK_INT(drain_open(drain, path, folder, ""), 0);
	return events_slots(&drain->map, 0, 0);
}

static void test_laps(const char *folder)
{
	uint64_t moved = 0, lost = 0, unfinished = 0;
	struct drain drain;
	struct events_slot *slots = opened_rings(folder, "test.1.0", &drain);

	for (uint64_t position = 0; position < SLOTS; position++)
		finish(slots, position);
	drain.map.rings[0].head = SLOTS;
	CHECK_INT(drain_move(&drain, false, &moved), 0);
	CHECK_INT(moved, SLOTS);
	/* In the next lap the third is handed out and not finished: what the lap before left there is not it. */
	finish(slots, SLOTS);
	finish(slots, SLOTS + 1);
	finish(slots, SLOTS + 3);
	drain.map.rings[0].head = SLOTS + 4;
	CHECK_INT(drain_move(&drain, false, &moved), 0);
	CHECK_INT(moved, SLOTS + 2);
	CHECK_INT(drain.map.rings[0].tail, SLOTS + 2);
	/* When nobody finishes it any more it is passed over, and counted. */
	CHECK_INT(drain_move(&drain, true, &moved), 0);
	CHECK_INT(moved, SLOTS + 3);
	CHECK_INT(drain_end(&drain, &lost, &unfinished), 0);
	CHECK_INT(unfinished, 1);
	/* More than the ring has cannot be there. */
	drain.map.rings[0].head = UINT64_C(3) * SLOTS;
	CHECK_INT(drain_move(&drain, false, &moved), -EBADMSG);
	drain_close(&drain, false);
}

/* An event whose bytes do not fit into what is read at once is not parted: of one that is cut nothing is moved. */
static void test_event_of_many_slots(const char *folder)
{
	uint64_t moved = 0;
	struct drain drain;
	struct events_slot *slots = opened_rings(folder, "test.2.0", &drain);

	finish(slots, 0);
	slots[0].size_bytes = 2 * EVENTS_PIECE_BYTES;
	((struct events_piece *)(void *)&slots[1])->commit = events_commit(1, false);
	drain.map.rings[0].head = 3;
	CHECK_INT(drain_move(&drain, false, &moved), 0);
	CHECK_INT(moved, 0);
	((struct events_piece *)(void *)&slots[2])->commit = events_commit(2, false);
	CHECK_INT(drain_move(&drain, false, &moved), 0);
	CHECK_INT(moved, 3);
	drain_close(&drain, false);
}

/* Any bytes: refused, or all that is found lies within them (the sanitizers' build looks). */
static void test_damaged(void)
{
	struct random random = { 11 };
	size_t size_bytes;
	uint8_t *bytes = made_rings(&size_bytes), *copy = malloc(size_bytes);
	struct events_map map;
	int refused = 0;

	if (!copy)
		abort();
	CHECK_INT(events_map_check(bytes, size_bytes, &map), 0);
	for (int i = 0; i < 20000; i++) {
		size_t size = random_between(&random, 0, 3) ? size_bytes : (size_t)random_between(&random, 0, (int64_t)size_bytes);

		memcpy(copy, bytes, size_bytes);
		for (int64_t flips = random_between(&random, 1, 4); flips; flips--)
			copy[random_between(&random, 0, (int64_t)sizeof(struct events_header) + 2 * (int64_t)sizeof(*descriptions) - 1)] ^=
				(uint8_t)(1 << random_between(&random, 0, 7));
		if (events_map_check(copy, size, &map)) {
			refused++;
			continue;
		}
		CHECK(map.header.size_bytes <= size);
		CHECK((uint8_t *)(events_slots(&map, map.header.stream_count - 1, map.header.ring_count - 1) +
				  map.header.streams[map.header.stream_count - 1].ring_slots) <= copy + size);
	}
	CHECK(refused > 1000);
	free(copy);
	free(bytes);
}

static void test_wanted(void)
{
	CHECK(!events_wanted("", &descriptions[0]));
	CHECK(events_wanted("+*\n", &descriptions[0]));
	CHECK(events_wanted("+group.*\n", &descriptions[0]));
	CHECK(events_wanted("-*\n+group.e?ent\n", &descriptions[0]));
	CHECK(!events_wanted("+*\n-group.event\n", &descriptions[0]));
	CHECK(events_wanted("+*\n-group.event\n", &descriptions[1]));
	CHECK(!events_wanted("+group.even\n+roup.event\n+group.events\n", &descriptions[0]));
	CHECK(events_wanted("+*oup.*t", &descriptions[0]));
}

int main(void)
{
	char folder[] = "/tmp/bw-test-drain-XXXXXX", command[64];

	CHECK(mkdtemp(folder) != NULL);
	test_laps(folder);
	test_event_of_many_slots(folder);
	test_damaged();
	test_wanted();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK_INT(system(command), 0);
	return check_result();
}
