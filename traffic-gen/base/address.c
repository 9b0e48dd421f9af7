/* SPDX-License-Identifier: Apache-2.0 */
#include "base/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { GROUPS = ADDRESS_IPV6_BYTES / 2 };

/* Read a decimal number without sign or leading zeros; returns what follows it, or NULL. */
static const char *parse_decimal(const char *text, uint32_t max, uint32_t *value)
{
	uint32_t sum = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		sum = sum * 10 + (uint32_t)(*p - '0');
		if (sum > max)
			return NULL;
	}
	if (p == text || (*text == '0' && p - text > 1))
		return NULL;
	*value = sum;
	return p;
}

/* Read a dotted quad; returns what follows it, or NULL. */
static const char *parse_quad(const char *text, uint32_t *ipv4)
{
	uint32_t sum = 0;
	const char *p = text;

	for (int i = 0; i < 4; i++) {
		uint32_t octet;

		if (i > 0 && *p++ != '.')
			return NULL;
		p = parse_decimal(p, 255, &octet);
		if (!p)
			return NULL;
		sum = sum << 8 | octet;
	}
	*ipv4 = sum;
	return p;
}

int address_parse_ipv4(const char *text, uint32_t *ipv4)
{
	uint32_t value;
	const char *end = parse_quad(text, &value);

	if (!end || *end != '\0')
		return -EINVAL;
	*ipv4 = value;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Read one to four hexadecimal digits; returns what follows them, or NULL. */
static const char *parse_group(const char *text, uint16_t *group)
{
	unsigned int value = 0;
	const char *p = text;

	for (; hex_digit(*p) >= 0; p++) {
		if (p - text == 4)
			return NULL;
		value = value << 4 | (unsigned int)hex_digit(*p);
	}
	*group = (uint16_t)value;
	return p == text ? NULL : p;
}

/* Read groups, of which "::" stands for one or more that are 0; returns what follows them, or NULL. */
static const char *parse_groups(const char *text, uint8_t ipv6[ADDRESS_IPV6_BYTES])
{
	uint16_t groups[GROUPS] = { 0 };
	int count = 0, gap = -1;
	const char *p = text;

	for (;;) {
		if (p[0] == ':' && p[1] == ':') {
			if (gap >= 0)
				return NULL;
			gap = count;
			p += 2;
			if (hex_digit(*p) < 0)
				break;
		} else if (count > 0 && *p == ':') {
			p++;
		} else if (count > 0) {
			break;
		}
		if (count == GROUPS)
			return NULL;
		p = parse_group(p, &groups[count++]);
		if (!p)
			return NULL;
	}
	if (gap < 0 ? count != GROUPS : count == GROUPS)
		return NULL;
	memset(ipv6, 0, ADDRESS_IPV6_BYTES);
	for (int i = 0; i < count; i++) {
		size_t at = (size_t)(gap < 0 || i < gap ? i : i + GROUPS - count);

		ipv6[2 * at] = (uint8_t)(groups[i] >> 8);
		ipv6[2 * at + 1] = (uint8_t)groups[i];
	}
	return p;
}

/* Read an address without a port; returns what follows it, or NULL. */
static const char *parse_ip(const char *text, struct address *address)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	const char *end;

	*address = (struct address){ 0 };
	end = parse_quad(text, &address->ipv4);
	if (end)
		return end;
	end = parse_groups(text, address->ipv6);
	address->is_ipv6 = true;
	return end && memcmp(address->ipv6, mapped, sizeof(mapped)) == 0 ? NULL : end;
}

int address_parse_ip(const char *text, struct address *address)
{
	struct address read;
	const char *end = parse_ip(text, &read);

	if (!end || *end != '\0')
		return -EINVAL;
	*address = read;
	return 0;
}

int address_parse(const char *text, struct address *address)
{
	bool bracketed = *text == '[';
	struct address read;
	uint32_t port;
	const char *end = parse_ip(text + bracketed, &read);

	if (!end || read.is_ipv6 != bracketed || (bracketed && *end++ != ']') || *end != ':')
		return -EINVAL;
	end = parse_decimal(end + 1, 65535, &port);
	if (!end || *end != '\0' || port == 0)
		return -EINVAL;
	read.port = (uint16_t)port;
	*address = read;
	return 0;
}

static uint16_t group_at(const uint8_t ipv6[ADDRESS_IPV6_BYTES], size_t at)
{
	return (uint16_t)(ipv6[2 * at] << 8 | ipv6[2 * at + 1]);
}

/* Find the longest run of groups that are 0, the first of several; one alone is none. Return its length. */
static int find_zeros(const uint8_t ipv6[ADDRESS_IPV6_BYTES], int *begin)
{
	int longest = 1;

	for (int i = 0, run = 0; i < GROUPS; i++) {
		run = group_at(ipv6, (size_t)i) ? 0 : run + 1;
		if (run > longest) {
			longest = run;
			*begin = i + 1 - run;
		}
	}
	return longest > 1 ? longest : 0;
}

static size_t format_ipv6(const uint8_t ipv6[ADDRESS_IPV6_BYTES], char *text, size_t room)
{
	int begin = GROUPS, zeros = find_zeros(ipv6, &begin);
	size_t used = 0;

	for (int i = 0; i < GROUPS; i++) {
		if (zeros && i == begin) {
			used += (size_t)snprintf(text + used, room - used, "::");
			i += zeros - 1;
			continue;
		}
		used += (size_t)snprintf(text + used, room - used, i > 0 && i != begin + zeros ? ":%x" : "%x",
					 (unsigned int)group_at(ipv6, (size_t)i));
	}
	return used;
}

char *address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	unsigned int a = address->ipv4 >> 24, b = address->ipv4 >> 16 & 255;
	unsigned int c = address->ipv4 >> 8 & 255, d = address->ipv4 & 255;
	size_t used = 0;

	if (address->is_ipv6) {
		if (address->port)
			text[used++] = '[';
		used += format_ipv6(address->ipv6, text + used, ADDRESS_TEXT_BYTES - used);
		if (address->port)
			text[used++] = ']';
	} else {
		used = (size_t)snprintf(text, ADDRESS_TEXT_BYTES, "%u.%u.%u.%u", a, b, c, d);
	}
	if (address->port)
		snprintf(text + used, ADDRESS_TEXT_BYTES - used, ":%u", address->port);
	return text;
}

bool address_same_ip(const struct address *one, const struct address *other)
{
	if (one->is_ipv6 != other->is_ipv6)
		return false;
	return one->is_ipv6 ? memcmp(one->ipv6, other->ipv6, sizeof(one->ipv6)) == 0 : one->ipv4 == other->ipv4;
}

struct address address_at(const struct address *address, uint16_t port)
{
	struct address at = *address;

	at.port = port;
	return at;
}
