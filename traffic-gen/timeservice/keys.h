/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symmetric keys of NTP servers, in the format of chrony's key file (chrony.conf(5), `keyfile`): a line each, "ID TYPE KEY", KEY as
 * ASCII, "ASCII:…" or "HEX:…". Types are AES128 and AES256, for AES-CMAC (RFC 8573); lines of chrony's other types are passed over.
 * Pure: the text is passed in.
 */
#ifndef BW_TIMESERVICE_KEYS_H
#define BW_TIMESERVICE_KEYS_H

#include <stddef.h>
#include <stdint.h>

#define KEYS_ID_MAX INT64_C(4294967295)

enum { KEYS_KEY_BYTES_MAX = 32, KEYS_ERROR_BYTES = 512 };

struct key {
	size_t size_bytes; /* 16 or 32: AES-128, AES-256 */
	uint8_t bytes[KEYS_KEY_BYTES_MAX];
};

/**
 * Find a key. The whole text is checked.
 *
 * @param path   names the text in errors
 * @param id     1..KEYS_ID_MAX
 * @param key    receives it; the caller wipes it
 * @param error  receives one line, "FILE:LINE: type: …; allowed …"; never a key
 * @return 0; -ENOENT: it is not there; -EINVAL: a line is wrong
 */
int keys_find(const char *path, const char *text, size_t length, uint32_t id, struct key *key, char error[KEYS_ERROR_BYTES]);

#endif
