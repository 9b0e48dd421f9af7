/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: AES-CMAC (RFC 4493; NIST SP 800-38B), which authenticates NTP packets (RFC 8573). The cipher is never this
 * project's: on Linux that of Nettle, linked in where the build has it, or else the kernel's (AF_ALG); on Windows BCrypt's.
 */
#ifndef BW_PORT_CMAC_H
#define BW_PORT_CMAC_H

#include <stddef.h>
#include <stdint.h>

enum { PORT_CMAC_TAG_BYTES = 16, PORT_CMAC_AES128_BYTES = 16, PORT_CMAC_AES256_BYTES = 32 };

struct port_cmac; /* opaque: a key that is ready to be used, by one thread at a time */

/**
 * Prepare a key; the caller may wipe its own copy.
 *
 * @param key_bytes  PORT_CMAC_AES128_BYTES or PORT_CMAC_AES256_BYTES
 * @return 0; -EINVAL: of another size; -ENOTSUP: this system has no AES-CMAC, or lets this process not use it; or -errno
 */
int port_cmac_open(const uint8_t *key, size_t key_bytes, struct port_cmac **cmac_out);
/** Wipe the key. NULL is left alone. */
void port_cmac_close(struct port_cmac *cmac);

/** Work out the tag of some bytes; of none, too. @return 0 or -errno; then *tag is not to be used */
int port_cmac_tag(struct port_cmac *cmac, const uint8_t *data, size_t size_bytes, uint8_t tag[PORT_CMAC_TAG_BYTES]);

#endif
