/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Windows 10 and later: CMAC (RFC 4493) over BCrypt's AES, block by block. BCrypt has CMAC itself, but Wine does not:
 * there is one way for both. Nor is its CBC mode used, whose state in Wine 8 outlives a call with the same vector.
 */
#include "port/port_cmac.h"

#include <windows.h>

#include <bcrypt.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_secret.h"

enum { BLOCK_BYTES = PORT_CMAC_TAG_BYTES, R_128 = 0x87, PADDING = 0x80 };

struct port_cmac {
	BCRYPT_ALG_HANDLE algorithm;
	BCRYPT_KEY_HANDLE key;
	uint8_t whole[BLOCK_BYTES], padded[BLOCK_BYTES]; /* subkeys K1, K2: of a last block that is whole, and of one that is not */
};

/* Encrypt a block in place. Returns 0 or -EIO. */
static int encrypt(const struct port_cmac *cmac, uint8_t block[BLOCK_BYTES])
{
	ULONG done = 0;
	NTSTATUS status = BCryptEncrypt(cmac->key, block, BLOCK_BYTES, NULL, NULL, 0, block, BLOCK_BYTES, &done, 0);

	return BCRYPT_SUCCESS(status) && done == BLOCK_BYTES ? 0 : -EIO;
}

static void add(uint8_t to[BLOCK_BYTES], const uint8_t *from)
{
	for (int i = 0; i < BLOCK_BYTES; i++)
		to[i] ^= from[i];
}

/* Multiply by x in GF(2^128) (RFC 4493, section 2.3), without a branch on the key. */
static void twice(const uint8_t from[BLOCK_BYTES], uint8_t to[BLOCK_BYTES])
{
	uint8_t carry = from[0] >> 7;

	for (int i = 0; i < BLOCK_BYTES - 1; i++)
		to[i] = (uint8_t)(from[i] << 1 | from[i + 1] >> 7);
	to[BLOCK_BYTES - 1] = (uint8_t)(from[BLOCK_BYTES - 1] << 1 ^ (R_128 & (0 - carry)));
}

static int make_subkeys(struct port_cmac *cmac)
{
	uint8_t block[BLOCK_BYTES] = { 0 };
	int err = encrypt(cmac, block);

	twice(block, cmac->whole);
	twice(cmac->whole, cmac->padded);
	port_secret_wipe(block, sizeof(block));
	return err;
}

int port_cmac_open(const uint8_t *key, size_t key_bytes, struct port_cmac **cmac_out)
{
	struct port_cmac *cmac;
	int err = 0;

	if (key_bytes != PORT_CMAC_AES128_BYTES && key_bytes != PORT_CMAC_AES256_BYTES)
		return -EINVAL;
	cmac = calloc(1, sizeof(*cmac));
	if (!cmac)
		return -ENOMEM;
	if (!BCRYPT_SUCCESS(BCryptOpenAlgorithmProvider(&cmac->algorithm, BCRYPT_AES_ALGORITHM, NULL, 0)) ||
	    !BCRYPT_SUCCESS(BCryptSetProperty(cmac->algorithm, BCRYPT_CHAINING_MODE, (PUCHAR)BCRYPT_CHAIN_MODE_ECB,
					      sizeof(BCRYPT_CHAIN_MODE_ECB), 0)) ||
	    !BCRYPT_SUCCESS(BCryptGenerateSymmetricKey(cmac->algorithm, &cmac->key, NULL, 0, (PUCHAR)(uintptr_t)key,
						       (ULONG)key_bytes, 0)))
		err = -ENOTSUP;
	if (!err)
		err = make_subkeys(cmac);
	if (err) {
		port_cmac_close(cmac);
		return err;
	}
	*cmac_out = cmac;
	return 0;
}

void port_cmac_close(struct port_cmac *cmac)
{
	if (!cmac)
		return;
	if (cmac->key)
		BCryptDestroyKey(cmac->key);
	if (cmac->algorithm)
		BCryptCloseAlgorithmProvider(cmac->algorithm, 0);
	port_secret_wipe(cmac, sizeof(*cmac));
	free(cmac);
}

int port_cmac_tag(struct port_cmac *cmac, const uint8_t *data, size_t size_bytes, uint8_t tag[PORT_CMAC_TAG_BYTES])
{
	uint8_t last[BLOCK_BYTES] = { 0 };
	int err = 0;

	memset(tag, 0, BLOCK_BYTES);
	for (; size_bytes > BLOCK_BYTES && !err; data += BLOCK_BYTES, size_bytes -= BLOCK_BYTES) {
		add(tag, data);
		err = encrypt(cmac, tag);
	}
	if (err)
		return err;
	if (size_bytes)
		memcpy(last, data, size_bytes);
	if (size_bytes < BLOCK_BYTES)
		last[size_bytes] = PADDING;
	add(tag, last);
	add(tag, size_bytes == BLOCK_BYTES ? cmac->whole : cmac->padded);
	return encrypt(cmac, tag);
}
