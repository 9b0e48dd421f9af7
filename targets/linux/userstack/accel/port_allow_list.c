/* SPDX-License-Identifier: Apache-2.0 */
#include "allow_list.h"

#include <arpa/inet.h>
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

/* Take an address as RFC 4291, 2.2, and dotted quads have it, up to the slash or the end. */
static bool take_address(struct rest *rest, bool ipv6, uint8_t ip[ALLOW_IP_BYTES])
{
	char text[INET6_ADDRSTRLEN];
	const char *slash = memchr(rest->at, '/', (size_t)(rest->end - rest->at));
	const char *end = slash ? slash : rest->end;
	size_t length = (size_t)(end - rest->at);

	if (length >= sizeof(text))
		return false;
	memcpy(text, rest->at, length);
	text[length] = '\0';
	rest->at = end;
	return inet_pton(ipv6 ? AF_INET6 : AF_INET, text, ip) == 1;
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
	if (!take_address(&rest, entry->ipv6, entry->ip))
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
