/* SPDX-License-Identifier: Apache-2.0 */
#include "allow_list.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum {
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PORT_MAX = 65535,
	IPV4_BYTES = 4,
	IPV4_BITS = 32,
	IPV6_BITS = 128,
	GROUPS = 8, /* of an IPv6 address, 16 bits each */
	GROUP_DIGITS = 4,
	MAPPED_BITS = 96,
};

/* The prefix of IPv6 addresses that stand for those of IPv4, RFC 4291, 2.5.5.2. */
static const uint8_t mapped[ALLOW_IP_BYTES - IPV4_BYTES] = { [10] = 0xff, [11] = 0xff };

/* What is left of an entry. */
struct rest {
	const char *at, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take(struct rest *rest, const char *text)
{
	size_t length = strlen(text);

	if ((size_t)(rest->end - rest->at) < length || memcmp(rest->at, text, length) != 0)
		return false;
	rest->at += length;
	return true;
}

/* Take a decimal number without leading zeros. Return 0, -EINVAL or -ERANGE. */
static int take_number(struct rest *rest, int max, int *value)
{
	const char *begin = rest->at;
	int sum = 0;

	for (; rest->at < rest->end && is_digit(*rest->at); rest->at++) {
		if (sum <= max)
			sum = sum * 10 + (*rest->at - '0');
	}
	if (rest->at == begin || (*begin == '0' && rest->at - begin > 1))
		return -EINVAL;
	*value = sum;
	return sum > max ? -ERANGE : 0;
}

static int parse_ports(struct rest rest, struct allow_entry *entry)
{
	int first, last, err = take_number(&rest, PORT_MAX, &first);

	if (err == -EINVAL)
		return err;
	last = first;
	if (take(&rest, "-")) {
		int second = take_number(&rest, PORT_MAX, &last);

		err = second ? second : err;
	}
	if (err == -EINVAL || rest.at != rest.end)
		return -EINVAL;
	if (err || !first || last < first)
		return -ERANGE;
	entry->first_port = (uint16_t)first;
	entry->last_port = (uint16_t)last;
	return 0;
}

static bool take_quad(struct rest *rest, uint8_t ip[IPV4_BYTES])
{
	for (int i = 0; i < IPV4_BYTES; i++) {
		int octet;

		if ((i > 0 && !take(rest, ".")) || take_number(rest, UINT8_MAX, &octet))
			return false;
		ip[i] = (uint8_t)octet;
	}
	return true;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_group(struct rest *rest, uint8_t ip[2])
{
	unsigned int value = 0;
	int digits = 0;

	for (; rest->at < rest->end && hex_digit(*rest->at) >= 0; rest->at++) {
		if (++digits > GROUP_DIGITS)
			return false;
		value = value << 4 | (unsigned int)hex_digit(*rest->at);
	}
	ip[0] = (uint8_t)(value >> 8);
	ip[1] = (uint8_t)value;
	return digits > 0;
}

/* The last 32 bits may be written as an address of IPv4. */
static bool is_quad(struct rest rest)
{
	uint8_t unused[IPV4_BYTES];

	return take_quad(&rest, unused);
}

/*
 * Take groups into `ip`, `room` of them at most, up to "::" or their end; after `quad_from` of them a quad may be the last two.
 * Return how many; -1: they are no such groups.
 */
static int take_groups(struct rest *rest, uint8_t *ip, int room, int quad_from)
{
	int count = 0;

	while (rest->at < rest->end && hex_digit(*rest->at) >= 0) {
		struct rest behind;

		if (count >= quad_from && count <= room - 2 && is_quad(*rest)) {
			take_quad(rest, ip + 2 * (size_t)count);
			return count + 2;
		}
		if (count == room || !take_group(rest, ip + 2 * (size_t)count))
			return -1;
		count++;
		behind = *rest;
		if (!take(&behind, ":") || take(&behind, ":"))
			return count;
		if (behind.at == behind.end || hex_digit(*behind.at) < 0)
			return -1;
		*rest = behind;
	}
	return count;
}

/* RFC 4291, 2.2; "::" stands for at least one group. */
static bool take_ipv6(struct rest *rest, uint8_t ip[ALLOW_IP_BYTES])
{
	uint8_t tail[ALLOW_IP_BYTES] = { 0 };
	int before, behind;

	memset(ip, 0, ALLOW_IP_BYTES);
	before = take_groups(rest, ip, GROUPS, GROUPS - 2);
	if (before < 0 || before == GROUPS)
		return before == GROUPS;
	if (!take(rest, "::"))
		return false;
	behind = take_groups(rest, tail, GROUPS - 1 - before, 0);
	if (behind < 0)
		return false;
	memcpy(ip + ALLOW_IP_BYTES - 2 * (size_t)behind, tail, 2 * (size_t)behind);
	return true;
}

static void clear_behind(uint8_t *ip, int prefix_bits, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		int bits = prefix_bits - 8 * i;

		if (bits < 8)
			ip[i] &= bits > 0 ? (uint8_t)(0xff << (8 - bits)) : 0;
	}
}

static void unmap(struct allow_entry *entry)
{
	if (!entry->ipv6 || entry->prefix_bits < MAPPED_BITS || memcmp(entry->ip, mapped, sizeof(mapped)) != 0)
		return;
	memmove(entry->ip, entry->ip + sizeof(mapped), IPV4_BYTES);
	memset(entry->ip + IPV4_BYTES, 0, sizeof(mapped));
	entry->ipv6 = false;
	entry->prefix_bits -= MAPPED_BITS;
}

static int parse_address(struct rest rest, struct allow_entry *entry)
{
	int max, err = 0;

	entry->ipv6 = memchr(rest.at, ':', (size_t)(rest.end - rest.at)) != NULL;
	if (!(entry->ipv6 ? take_ipv6(&rest, entry->ip) : take_quad(&rest, entry->ip)))
		return -EINVAL;
	max = entry->ipv6 ? IPV6_BITS : IPV4_BITS;
	entry->prefix_bits = max;
	if (take(&rest, "/"))
		err = take_number(&rest, max, &entry->prefix_bits);
	if (err == -EINVAL || rest.at != rest.end)
		return -EINVAL;
	if (err)
		return err;
	clear_behind(entry->ip, entry->prefix_bits, ALLOW_IP_BYTES);
	unmap(entry);
	return 0;
}

static int parse_entry(struct rest rest, struct allow_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	if (take(&rest, "tcp:"))
		entry->protocol = PROTOCOL_TCP;
	else if (take(&rest, "udp:"))
		entry->protocol = PROTOCOL_UDP;
	if (memchr(rest.at, '.', (size_t)(rest.end - rest.at)) || memchr(rest.at, ':', (size_t)(rest.end - rest.at)))
		return parse_address(rest, entry);
	return parse_ports(rest, entry);
}

int allow_list_parse(const char *text, struct allow_list *list, const char **wrong)
{
	list->count = 0;
	while (*text || list->count) {
		struct rest rest = { text, text + strcspn(text, ",") };
		int err = list->count < ALLOW_ENTRIES_MAX ? parse_entry(rest, &list->entries[list->count]) : -E2BIG;

		if (err) {
			list->count = 0;
			*wrong = text;
			return err;
		}
		list->count++;
		if (!*rest.end)
			break;
		text = rest.end + 1;
	}
	return 0;
}

static bool has_address(const struct allow_entry *entry, const uint8_t *ip, bool ipv6)
{
	uint8_t prefix[ALLOW_IP_BYTES] = { 0 };
	int bytes;

	if (!ip)
		return false;
	if (ipv6 && memcmp(ip, mapped, sizeof(mapped)) == 0) {
		ip += sizeof(mapped);
		ipv6 = false;
	}
	if (ipv6 != entry->ipv6)
		return false;
	bytes = ipv6 ? ALLOW_IP_BYTES : IPV4_BYTES;
	memcpy(prefix, ip, (size_t)bytes);
	clear_behind(prefix, entry->prefix_bits, bytes);
	return memcmp(prefix, entry->ip, (size_t)bytes) == 0;
}

static bool has_port(const struct allow_entry *entry, uint16_t port)
{
	return port && port >= entry->first_port && port <= entry->last_port;
}

bool allow_list_has(const struct allow_list *list, int protocol, const uint8_t *ip, bool ipv6, uint16_t local_port,
		    uint16_t peer_port)
{
	for (int i = 0; i < list->count; i++) {
		const struct allow_entry *entry = &list->entries[i];

		if (entry->protocol && entry->protocol != protocol)
			continue;
		if (entry->first_port ? has_port(entry, local_port) || has_port(entry, peer_port) : has_address(entry, ip, ipv6))
			return true;
	}
	return list->count == 0;
}
