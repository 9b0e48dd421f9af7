/* SPDX-License-Identifier: Apache-2.0 */
/* What the service, the path and the programs know of the interface. */
#include <netinet/in.h>
#include <string.h>

#include "service/port_netlink.h"
#include "service/port_service.h"

void interface_tell(const struct service *service, struct stackd_answer *answer)
{
	memcpy(answer->mac, service->interface.mac, sizeof(answer->mac));
	answer->interface_index = service->interface.index;
	answer->mtu_bytes = service->interface.mtu_bytes;
	answer->addresses = (uint32_t)service->address_count;
	for (int i = 0; i < service->address_count; i++) {
		answer->address[i].family = service->addresses[i].family == 4 ? AF_INET : AF_INET6;
		memcpy(answer->address[i].ip, service->addresses[i].ip, PATH_IP_BYTES);
	}
}

int interface_take(struct service *service)
{
	struct stackd_answer event = { .verb = STACKD_ADDRESSES };
	struct path_interface now = { .index = service->interface.index };
	struct path_address addresses[PATH_ADDRESSES] = { 0 };
	int count = netlink_interface(service->netlink, &now);

	if (!count)
		count = netlink_addresses(service->netlink, now.index, addresses);
	if (count < 0)
		return count;
	if (!memcmp(&now, &service->interface, sizeof(now)) && count == service->address_count &&
	    !memcmp(addresses, service->addresses, sizeof(addresses)))
		return 0;
	path_set_interface(&service->path, &now);
	path_set_addresses(&service->path, service->addresses, service->address_count, addresses, count);
	service->interface = now;
	service->address_count = count;
	memcpy(service->addresses, addresses, sizeof(addresses));
	programs_set_mtu(service);
	interface_tell(service, &event);
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service->clients[i].program)
			send_event(&service->clients[i], &event);
	}
	return 0;
}
