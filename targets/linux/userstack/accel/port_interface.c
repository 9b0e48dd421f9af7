/* SPDX-License-Identifier: Apache-2.0 */
#include "port_interface.h"

#include <string.h>
#include <sys/socket.h>

#include "service/stackd.h"

static struct {
	uint8_t mac[STACKD_MAC_BYTES];
	struct stackd_address addresses[STACKD_ADDRESSES_MAX];
	uint32_t address_count, index;
} interface;

static struct stack_address to_stack(const struct stackd_address *address)
{
	struct stack_address own = { .family = address->family == AF_INET6 ? STACK_IPV6 : STACK_IPV4 };

	memcpy(own.ip, address->ip, sizeof(own.ip));
	return own;
}

static bool same_address(const struct stackd_address *one, const struct stackd_address *other)
{
	return one->family == other->family && memcmp(one->ip, other->ip, one->family == AF_INET6 ? 16 : 4) == 0;
}

static bool is_among(const struct stackd_address *address, const struct stackd_address *all, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (same_address(address, &all[i]))
			return true;
	}
	return false;
}

/* What is no more there goes first, as the stack's room is small. */
void interface_follow(const struct stackd_answer *said)
{
	uint32_t count = said->addresses < STACKD_ADDRESSES_MAX ? said->addresses : STACKD_ADDRESSES_MAX;

	for (uint32_t i = 0; i < interface.address_count; i++) {
		struct stack_address old = to_stack(&interface.addresses[i]);

		if (!is_among(&interface.addresses[i], said->address, count))
			stack_remove_address(&old);
	}
	interface.address_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct stack_address each = to_stack(&said->address[i]);

		if (stack_add_address(&each) == 0)
			interface.addresses[interface.address_count++] = said->address[i];
	}
	stack_set_mtu(said->mtu_bytes);
}

void interface_begin(const struct stackd_answer *hello)
{
	memcpy(interface.mac, hello->mac, STACKD_MAC_BYTES);
	interface.index = hello->interface_index;
	interface_follow(hello);
}

bool interface_has_address(const struct stack_address *address)
{
	struct stackd_address own = { .family = address->family == STACK_IPV6 ? AF_INET6 : AF_INET };

	memcpy(own.ip, address->ip, sizeof(own.ip));
	return is_among(&own, interface.addresses, interface.address_count);
}

uint32_t interface_index(void)
{
	return interface.index;
}

const uint8_t *interface_mac(void)
{
	return interface.mac;
}
