/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Linux: AES-CMAC of the kernel (Linux' Documentation/crypto/userspace-if.rst), of builds without Nettle. The kernel
 * needs CONFIG_CRYPTO_USER_API_HASH and CONFIG_CRYPTO_CMAC; it loads the modules by itself. A sandbox has to allow AF_ALG.
 */
#define _GNU_SOURCE
#include "port/port_cmac.h"

#include <errno.h>
#include <linux/if_alg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

struct port_cmac {
	int operation; /* socket: what is sent to it is authenticated */
};

/* Errors of a kernel that lacks it, or of a sandbox that does not allow it. */
static int lacking(int error)
{
	switch (error) {
	case EAFNOSUPPORT:
	case ENOENT:
	case ELIBBAD:
	case EPERM:
	case EACCES:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
		return -ENOTSUP;
	default:
		return -error;
	}
}

int port_cmac_open(const uint8_t *key, size_t key_bytes, struct port_cmac **cmac_out)
{
	static const struct sockaddr_alg name = { .salg_family = AF_ALG, .salg_type = "hash", .salg_name = "cmac(aes)" };
	struct port_cmac *cmac;
	int transform, err = 0;

	if (key_bytes != PORT_CMAC_AES128_BYTES && key_bytes != PORT_CMAC_AES256_BYTES)
		return -EINVAL;
	transform = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (transform < 0)
		return lacking(errno);
	cmac = calloc(1, sizeof(*cmac));
	if (!cmac)
		err = -ENOMEM;
	else if (bind(transform, (const struct sockaddr *)&name, sizeof(name)))
		err = lacking(errno);
	else if (setsockopt(transform, SOL_ALG, ALG_SET_KEY, key, (socklen_t)key_bytes))
		err = -errno;
	if (!err && cmac) {
		cmac->operation = accept4(transform, NULL, NULL, SOCK_CLOEXEC);
		err = cmac->operation < 0 ? -errno : 0;
	}
	close(transform); /* the operation holds what it needs */
	if (err) {
		free(cmac);
		return err;
	}
	*cmac_out = cmac;
	return 0;
}

void port_cmac_close(struct port_cmac *cmac)
{
	if (!cmac)
		return;
	close(cmac->operation);
	free(cmac);
}

int port_cmac_tag(struct port_cmac *cmac, const uint8_t *data, size_t size_bytes, uint8_t tag[PORT_CMAC_TAG_BYTES])
{
	ssize_t done;

	do
		done = send(cmac->operation, data, size_bytes, MSG_NOSIGNAL);
	while (done < 0 && errno == EINTR);
	if (done != (ssize_t)size_bytes)
		return done < 0 ? -errno : -EIO;
	do
		done = read(cmac->operation, tag, PORT_CMAC_TAG_BYTES);
	while (done < 0 && errno == EINTR);
	return done == PORT_CMAC_TAG_BYTES ? 0 : done < 0 ? -errno : -EIO;
}
