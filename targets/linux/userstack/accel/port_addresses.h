/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as programs have them, and as the stack does. */
#ifndef BW_ACCEL_ADDRESSES_H
#define BW_ACCEL_ADDRESSES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "core/stack.h"

/** @return 0 or -EINVAL, -EAFNOSUPPORT: no address of IPv4 or IPv6 */
int address_from_sockaddr(const struct sockaddr *sockaddr, socklen_t length, struct stack_address *address);
/** An address as a socket of IPv6 has it: of IPv4, the one within IPv6 that stands for it (RFC 4291, 2.5.5.2). */
struct in6_addr address_as_ipv6(const struct stack_address *address);
/** Write an address as a socket of this family has it, cut off as the kernel does. */
void address_to_sockaddr(int domain, const struct stack_address *address, struct sockaddr *sockaddr, socklen_t *length);

/** How many bytes of `ip` it has. */
size_t address_bytes(const struct stack_address *address);
bool address_is_any(const struct stack_address *address);
/** Whether packets to an address never leave by a card. */
bool address_is_loopback(const struct stack_address *address);
/** Whether an address means several stations whatever the interface is: multicast, or broadcast on a link. */
bool address_is_of_many(const struct stack_address *address);

#endif
