/* SPDX-License-Identifier: Apache-2.0 */
#include "neighbours.h"

#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS = 1024, NEIGHBOURS_MAX = 16384, WAITING_MAX_BYTES = 256 * 1024, IPV4_BYTES = 4, IPV6_BYTES = 16,
	IPV4_TO_AT = 16, IPV6_TO_AT = 24,
};

struct waiting {
	struct waiting *next;
	size_t packet_bytes;
	uint8_t packet[];
};

struct neighbour {
	struct neighbour *next;
	uint8_t ip[IPV6_BYTES], source[IPV6_BYTES], mac[NEIGHBOUR_MAC_BYTES];
	bool ipv6, known, asked;
	struct waiting *first, **last;
	size_t waiting_bytes;
};

static struct neighbours_host calls;
static struct neighbour *buckets[BUCKETS], *recent; /* recent: that of the packet before */
static unsigned int count, waiting_count; /* of neighbours, of packets that wait */
static uint64_t dropped;

static size_t address_bytes(bool ipv6)
{
	return ipv6 ? IPV6_BYTES : IPV4_BYTES;
}

static struct neighbour **bucket_of(bool ipv6, const uint8_t *ip)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < address_bytes(ipv6); i++)
		hash = (hash ^ ip[i]) * 16777619u;
	return &buckets[(hash ^ hash >> 16) % BUCKETS];
}

static bool is_of(const struct neighbour *each, bool ipv6, const uint8_t *ip)
{
	return each->ipv6 == ipv6 && memcmp(each->ip, ip, address_bytes(ipv6)) == 0;
}

static struct neighbour *find(bool ipv6, const uint8_t *ip)
{
	struct neighbour *each = recent;

	if (each && is_of(each, ipv6, ip))
		return each;
	for (each = *bucket_of(ipv6, ip); each && !is_of(each, ipv6, ip); each = each->next)
		;
	recent = each ? each : recent;
	return each;
}

static void drop_waiting(struct neighbour *each, int err)
{
	while (each->first) {
		struct waiting *first = each->first;

		each->first = first->next;
		if (err)
			calls.lost(first->packet, first->packet_bytes, err);
		free(first);
		waiting_count--;
		dropped++;
	}
	each->last = &each->first;
	each->waiting_bytes = 0;
}

void neighbours_end(void)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		while (buckets[i]) {
			struct neighbour *each = buckets[i];

			buckets[i] = each->next;
			drop_waiting(each, 0);
			free(each);
		}
	}
	recent = NULL;
	count = 0;
}

void neighbours_begin(const struct neighbours_host *host)
{
	neighbours_end();
	calls = *host;
	dropped = 0;
}

static struct neighbour *add(bool ipv6, const uint8_t *ip)
{
	struct neighbour **bucket = bucket_of(ipv6, ip), *each;

	/* So many are a flood from made-up addresses: those that are in use are asked for again. */
	if (count == NEIGHBOURS_MAX)
		neighbours_end();
	each = calloc(1, sizeof(*each));
	if (!each)
		return NULL;
	each->ipv6 = ipv6;
	memcpy(each->ip, ip, address_bytes(ipv6));
	each->last = &each->first;
	each->next = *bucket;
	*bucket = each;
	count++;
	return each;
}

static void let_wait(struct neighbour *each, const uint8_t *packet, size_t packet_bytes)
{
	struct waiting *own = NULL;

	if (each->waiting_bytes + packet_bytes <= WAITING_MAX_BYTES)
		own = malloc(sizeof(*own) + packet_bytes);
	if (!own) {
		dropped++;
		return;
	}
	own->next = NULL;
	own->packet_bytes = packet_bytes;
	memcpy(own->packet, packet, packet_bytes);
	*each->last = own;
	each->last = &own->next;
	each->waiting_bytes += packet_bytes;
	waiting_count++;
}

void neighbours_send(const uint8_t *packet, size_t packet_bytes)
{
	bool ipv6 = packet[0] >> 4 == 6;
	const uint8_t *to = packet + (ipv6 ? IPV6_TO_AT : IPV4_TO_AT);
	struct neighbour *each = find(ipv6, to);

	if (each && each->known) {
		calls.send(each->mac, packet, packet_bytes);
		return;
	}
	each = each ? each : add(ipv6, to);
	if (!each) {
		dropped++;
		return;
	}
	let_wait(each, packet, packet_bytes);
	if (!each->asked) {
		each->asked = true;
		calls.ask(ipv6, to); /* it may answer at once: nothing of `each` is used behind it */
	}
}

void neighbours_lose(bool ipv6, const uint8_t *ip, int err)
{
	struct neighbour *each = find(ipv6, ip);

	if (!each)
		return;
	each->asked = each->known = false;
	drop_waiting(each, err);
}

void neighbours_learn(bool ipv6, const uint8_t *ip, const uint8_t mac[NEIGHBOUR_MAC_BYTES], const uint8_t *source)
{
	struct neighbour *each = find(ipv6, ip);

	each = each ? each : add(ipv6, ip);
	if (!each)
		return;
	each->asked = each->known = true;
	memcpy(each->mac, mac, NEIGHBOUR_MAC_BYTES);
	memcpy(each->source, source, address_bytes(ipv6));
	while (each->first) {
		struct waiting *first = each->first;

		each->first = first->next;
		calls.send(each->mac, first->packet, first->packet_bytes);
		free(first);
		waiting_count--;
	}
	each->last = &each->first;
	each->waiting_bytes = 0;
}

const uint8_t *neighbours_source(bool ipv6, const uint8_t *ip)
{
	const struct neighbour *each = find(ipv6, ip);

	return each && each->known ? each->source : NULL;
}

bool neighbours_waiting(void)
{
	return waiting_count > 0;
}

uint64_t neighbours_dropped(void)
{
	return dropped;
}
