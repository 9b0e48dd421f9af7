/* SPDX-License-Identifier: Apache-2.0 */
#include "base/address.h"

#include <errno.h>
#include <stdio.h>

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

int address_parse(const char *text, struct address *address)
{
	uint32_t ipv4, port;
	const char *end = parse_quad(text, &ipv4);

	if (!end || *end != ':')
		return -EINVAL;
	end = parse_decimal(end + 1, 65535, &port);
	if (!end || *end != '\0' || port == 0)
		return -EINVAL;
	address->ipv4 = ipv4;
	address->port = (uint16_t)port;
	return 0;
}

char *address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	unsigned int a = address->ipv4 >> 24, b = address->ipv4 >> 16 & 255;
	unsigned int c = address->ipv4 >> 8 & 255, d = address->ipv4 & 255;

	if (address->port)
		snprintf(text, ADDRESS_TEXT_BYTES, "%u.%u.%u.%u:%u", a, b, c, d, address->port);
	else
		snprintf(text, ADDRESS_TEXT_BYTES, "%u.%u.%u.%u", a, b, c, d);
	return text;
}
