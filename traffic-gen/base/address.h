/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of IPv4 and IPv6 with ports, and their text form. Pure: no call of the operating system. */
#ifndef BW_ADDRESS_H
#define BW_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_TEXT_BYTES = 48, ADDRESS_IPV6_BYTES = 16 }; /* "[" eight groups of four digits "]:65535" and its end */

/* What address_parse reads, in words. */
#define ADDRESS_FORM "ADDRESS:PORT, or [ADDRESS]:PORT of IPv6; port 1..65535"

struct address {
	uint32_t ipv4; /* host byte order; 0: any */
	uint16_t port; /* host byte order; 0: none, or chosen by the system */
	bool is_ipv6;  /* then it is in ipv6, not in ipv4 */
	uint8_t ipv6[ADDRESS_IPV6_BYTES]; /* network byte order; all 0: any */
};

/**
 * Read a dotted-quad IPv4 address ("10.77.0.1"). Octets are decimal, without leading zeros, signs or blanks.
 *
 * @param text  zero-terminated text; the whole of it must be the address
 * @param ipv4  the address in host byte order; untouched on error
 * @return 0, or -EINVAL
 */
int address_parse_ipv4(const char *text, uint32_t *ipv4);

/**
 * Read an address of IPv4, or of IPv6 as RFC 4291 writes it ("fd98::1"), without a zone. IPv4 within IPv6 ("::ffff:10.77.0.1") is none.
 *
 * @param address  the address, port 0; untouched on error
 * @return 0, or -EINVAL
 */
int address_parse_ip(const char *text, struct address *address);

/**
 * Read "a.b.c.d:port" or "[ipv6]:port", port 1..65535.
 *
 * @return 0, or -EINVAL (address untouched)
 */
int address_parse(const char *text, struct address *address);

/**
 * Write "a.b.c.d:port" or "[ipv6]:port", or the address alone when the port is 0; IPv6 as RFC 5952 has it.
 *
 * @param text  at least ADDRESS_TEXT_BYTES bytes
 * @return text
 */
char *address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES]);

/** Whether two are the same but for the port. */
bool address_same_ip(const struct address *one, const struct address *other);

/** @return the same with this port */
struct address address_at(const struct address *address, uint16_t port);

#endif
