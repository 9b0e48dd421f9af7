/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 addresses and ports in host byte order, and their text form. Pure: no call of the operating system. */
#ifndef BW_ADDRESS_H
#define BW_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_TEXT_BYTES = 24 }; /* "255.255.255.255:65535" and its end */

struct address {
	uint32_t ipv4; /* host byte order; 0: any */
	uint16_t port; /* host byte order; 0: none, or chosen by the system */
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
 * Read "a.b.c.d:port", port 1..65535.
 *
 * @return 0, or -EINVAL (address untouched)
 */
int address_parse(const char *text, struct address *address);

/**
 * Write "a.b.c.d:port", or "a.b.c.d" when the port is 0.
 *
 * @param text  at least ADDRESS_TEXT_BYTES bytes
 * @return text
 */
char *address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES]);

#endif
