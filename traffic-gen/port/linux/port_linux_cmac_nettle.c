/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: AES-CMAC of Nettle, which is linked in: it asks neither the kernel's configuration nor a sandbox. */
#include "port/port_cmac.h"

#include <errno.h>
#include <nettle/cmac.h>
#include <stdlib.h>

#include "port/port_secret.h"

struct port_cmac {
	size_t key_bytes;
	union {
		struct cmac_aes128_ctx aes128;
		struct cmac_aes256_ctx aes256;
	} context;
};

int port_cmac_open(const uint8_t *key, size_t key_bytes, struct port_cmac **cmac_out)
{
	struct port_cmac *cmac;

	if (key_bytes != PORT_CMAC_AES128_BYTES && key_bytes != PORT_CMAC_AES256_BYTES)
		return -EINVAL;
	cmac = calloc(1, sizeof(*cmac));
	if (!cmac)
		return -ENOMEM;
	cmac->key_bytes = key_bytes;
	if (key_bytes == PORT_CMAC_AES128_BYTES)
		cmac_aes128_set_key(&cmac->context.aes128, key);
	else
		cmac_aes256_set_key(&cmac->context.aes256, key);
	*cmac_out = cmac;
	return 0;
}

void port_cmac_close(struct port_cmac *cmac)
{
	if (!cmac)
		return;
	port_secret_wipe(cmac, sizeof(*cmac));
	free(cmac);
}

int port_cmac_tag(struct port_cmac *cmac, const uint8_t *data, size_t size_bytes, uint8_t tag[PORT_CMAC_TAG_BYTES])
{
	if (cmac->key_bytes == PORT_CMAC_AES128_BYTES) {
		cmac_aes128_update(&cmac->context.aes128, size_bytes, data);
		cmac_aes128_digest(&cmac->context.aes128, PORT_CMAC_TAG_BYTES, tag);
	} else {
		cmac_aes256_update(&cmac->context.aes256, size_bytes, data);
		cmac_aes256_digest(&cmac->context.aes256, PORT_CMAC_TAG_BYTES, tag);
	}
	return 0;
}
