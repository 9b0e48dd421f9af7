/* SPDX-License-Identifier: Apache-2.0 */
#include "events/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t line_up(uint64_t at)
{
	return (at + EVENTS_LINE_BYTES - 1) / EVENTS_LINE_BYTES * EVENTS_LINE_BYTES;
}

/* A text that is not empty, ended within its room, of printable characters. */
static bool is_text(const char *text, size_t room, bool may_be_empty)
{
	const char *end = memchr(text, 0, room);

	if (!end || (end == text && !may_be_empty))
		return false;
	for (; text < end; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* As a word of a pattern: what stands for others, and the dot between both, are not allowed. */
static bool is_word(const char *text, size_t room)
{
	return is_text(text, room, false) && !strpbrk(text, " *?.+,");
}

int events_description_check(const struct bw_point_description *description)
{
	bool histogram = description->kind == BW_POINT_HISTOGRAM;

	if (!is_word(description->group, sizeof(description->group)) || !is_word(description->name, sizeof(description->name)) ||
	    !is_text(description->about, sizeof(description->about), true) ||
	    !is_text(description->decoder, sizeof(description->decoder), description->kind != BW_POINT_DATA))
		return -EINVAL;
	if (description->kind < BW_POINT_EVENT || description->kind > BW_POINT_HISTOGRAM)
		return -EINVAL;
	if (histogram != (description->buckets > 0) || description->buckets > BW_HISTOGRAM_BUCKETS_MAX)
		return -EINVAL;
	return histogram && description->low >= description->high ? -EINVAL : 0;
}

static int compare_names(const void *left, const void *right)
{
	const struct bw_point_description *a = *(const struct bw_point_description *const *)left;
	const struct bw_point_description *b = *(const struct bw_point_description *const *)right;
	int order = strncmp(a->group, b->group, sizeof(a->group));

	return order ? order : strncmp(a->name, b->name, sizeof(a->name));
}

int events_descriptions_distinct(const struct bw_point_description *descriptions, uint32_t count)
{
	const struct bw_point_description **ordered = calloc(count, sizeof(const struct bw_point_description *));
	int err = 0;

	if (!ordered)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		ordered[i] = &descriptions[i];
	qsort(ordered, count, sizeof(*ordered), compare_names);
	for (uint32_t i = 1; !err && i < count; i++)
		if (!compare_names(&ordered[i - 1], &ordered[i]))
			err = -EINVAL;
	free(ordered);
	return err;
}

/* Where cells of histograms end that begin at `at`; tells each state its cells. */
static uint64_t lay_cells(const struct events_header *header, const struct bw_point_description *descriptions, uint64_t at,
			  struct events_state *states)
{
	for (uint32_t stream = 0; stream < header->stream_count; stream++)
		for (uint32_t point = 0; point < header->point_count; point++) {
			if (descriptions[point].kind != BW_POINT_HISTOGRAM)
				continue;
			if (states)
				states[stream * header->point_count + point].cells = at;
			at += (descriptions[point].buckets + 2) * sizeof(uint64_t);
		}
	return at;
}

static bool counts_fit(const struct events_header *header)
{
	if (!header->point_count || header->point_count > EVENTS_POINTS_MAX || !header->stream_count ||
	    header->stream_count > EVENTS_STREAMS_MAX || !header->ring_count || header->ring_count > EVENTS_RINGS_MAX)
		return false;
	for (uint32_t stream = 0; stream < header->stream_count; stream++) {
		uint32_t slots = header->streams[stream].ring_slots;

		if (slots < EVENTS_SLOTS_MIN || slots > EVENTS_SLOTS_MAX || (slots & (slots - 1)))
			return false;
		if (!is_text(header->streams[stream].name, EVENTS_STREAM_NAME_BYTES, false) || header->streams[stream].history > 1)
			return false;
	}
	return true;
}

int events_layout(struct events_header *header, const struct bw_point_description *descriptions)
{
	uint64_t states, at;

	if (!counts_fit(header) || !is_text(header->program, EVENTS_NAME_BYTES, false))
		return -EINVAL;
	for (uint32_t point = 0; point < header->point_count; point++)
		if (events_description_check(&descriptions[point]))
			return -EINVAL;
	memcpy(header->magic, EVENTS_RINGS_MAGIC, sizeof(header->magic));
	header->byte_order = EVENTS_BYTE_ORDER;
	header->header_bytes = sizeof(*header);
	states = (uint64_t)header->stream_count * header->point_count;
	header->descriptions_at = line_up(sizeof(*header));
	header->wanted_at = header->descriptions_at + header->point_count * sizeof(*descriptions);
	header->triggers_at = header->wanted_at + header->point_count;
	header->states_at = line_up(header->triggers_at + header->point_count);
	at = lay_cells(header, descriptions, header->states_at + states * sizeof(struct events_state), NULL);
	header->rings_at = line_up(at);
	at = header->rings_at + (uint64_t)header->stream_count * header->ring_count * sizeof(struct events_ring);
	for (uint32_t stream = 0; stream < header->stream_count; stream++) {
		header->streams[stream].slots_at = at;
		at += (uint64_t)header->ring_count * header->streams[stream].ring_slots * EVENTS_SLOT_BYTES;
	}
	header->size_bytes = at;
	return at > SIZE_MAX / 2 ? -EFBIG : 0;
}

static void find_all(uint8_t *base, struct events_map *map)
{
	map->base = base;
	map->descriptions = (struct bw_point_description *)(void *)(base + map->header.descriptions_at);
	map->wanted = base + map->header.wanted_at;
	map->triggers = base + map->header.triggers_at;
	map->states = (struct events_state *)(void *)(base + map->header.states_at);
	map->rings = (struct events_ring *)(void *)(base + map->header.rings_at);
}

int events_map_check(void *address, size_t size_bytes, struct events_map *map)
{
	struct events_header *header = &map->header, written;
	const struct bw_point_description *descriptions;

	if (size_bytes < sizeof(written))
		return -EBADMSG;
	memcpy(&written, address, sizeof(written));
	if (memcmp(written.magic, EVENTS_RINGS_MAGIC, sizeof(written.magic)) != 0)
		return -EBADMSG;
	if (written.byte_order == __builtin_bswap32(EVENTS_BYTE_ORDER))
		return -EXDEV;
	if (written.byte_order != EVENTS_BYTE_ORDER || written.header_bytes != sizeof(written) || !counts_fit(&written))
		return -EBADMSG;
	if (line_up(sizeof(written)) + (uint64_t)written.point_count * sizeof(*descriptions) > size_bytes)
		return -EBADMSG;
	/* The layout follows from the counts: what is written there must be the same. */
	*header = written;
	descriptions = (const struct bw_point_description *)(const void *)((const uint8_t *)address + line_up(sizeof(written)));
	if (events_layout(header, descriptions) || memcmp(header, &written, sizeof(written)) != 0 || header->size_bytes > size_bytes)
		return -EBADMSG;
	find_all(address, map);
	events_lay_cells(map);
	return 0;
}

void events_lay_cells(const struct events_map *map)
{
	const struct events_header *header = &map->header;

	lay_cells(header, map->descriptions,
		  header->states_at + (uint64_t)header->stream_count * header->point_count * sizeof(struct events_state), map->states);
}

struct events_slot *events_slots(const struct events_map *map, unsigned int stream, unsigned int ring)
{
	uint64_t at = map->header.streams[stream].slots_at + (uint64_t)ring * map->header.streams[stream].ring_slots * EVENTS_SLOT_BYTES;

	return (struct events_slot *)(void *)(map->base + at);
}

/* A pattern with * (any characters) and ? (one) against a text. */
static bool fits(const char *pattern, const char *pattern_end, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text) {
		if (pattern < pattern_end && (*pattern == *text || *pattern == '?')) {
			pattern++;
			text++;
		} else if (pattern < pattern_end && *pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (pattern < pattern_end && *pattern == '*')
		pattern++;
	return pattern == pattern_end;
}

bool events_wanted(const char *wanted, const struct bw_point_description *description)
{
	char full[sizeof(description->group) + sizeof(description->name) + 1];
	size_t group_length = strlen(description->group);
	bool is_wanted = false;

	memcpy(full, description->group, group_length);
	full[group_length] = '.';
	memcpy(full + group_length + 1, description->name, strlen(description->name) + 1);
	while (*wanted) {
		const char *end = wanted + strcspn(wanted, "\n");

		if ((*wanted == '+' || *wanted == '-') && fits(wanted + 1, end, full))
			is_wanted = *wanted == '+';
		wanted = *end ? end + 1 : end;
	}
	return is_wanted;
}
