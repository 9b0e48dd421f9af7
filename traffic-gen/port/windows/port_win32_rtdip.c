/* SPDX-License-Identifier: Apache-2.0 */
/* RTDiP on Windows: there is none. Whoever asks for it is told so. */
#include <errno.h>

#include "rtdip.h"

int rtdip_open(const char *socket_path, unsigned int flags, struct rtdip **handle)
{
	(void)socket_path;
	(void)flags;
	(void)handle;
	return -ENOTSUP;
}

void rtdip_close(struct rtdip *handle)
{
	(void)handle;
}

int rtdip_bind(struct rtdip *handle, uint16_t port, uint32_t ring_bytes)
{
	(void)handle;
	(void)port;
	(void)ring_bytes;
	return -ENOTSUP;
}

int64_t rtdip_send(struct rtdip *handle, const struct rtdip_address *to, uint16_t from_port, enum rtdip_priority priority,
		   const void *data, size_t size_bytes)
{
	(void)handle;
	(void)to;
	(void)from_port;
	(void)priority;
	(void)data;
	(void)size_bytes;
	return -ENOTSUP;
}

uint32_t rtdip_data_max_bytes(const struct rtdip *handle)
{
	(void)handle;
	return 0;
}

int rtdip_receive(struct rtdip *handle, struct rtdip_message *message, void *data, size_t room_bytes, int64_t timeout_ns)
{
	(void)handle;
	(void)message;
	(void)data;
	(void)room_bytes;
	(void)timeout_ns;
	return -ENOTSUP;
}

int rtdip_descriptor(const struct rtdip *handle)
{
	(void)handle;
	return -ENOTSUP;
}

int rtdip_sending_descriptor(const struct rtdip *handle)
{
	(void)handle;
	return -ENOTSUP;
}

bool rtdip_has_ended(const struct rtdip *handle)
{
	(void)handle;
	return false;
}

int rtdip_resolve(uint32_t ipv4, uint8_t mac[RTDIP_MAC_BYTES])
{
	(void)ipv4;
	(void)mac;
	return -ENOTSUP;
}
