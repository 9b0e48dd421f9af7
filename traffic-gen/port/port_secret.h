/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: files that nobody else may read, and memory that is wiped. */
#ifndef BW_PORT_SECRET_H
#define BW_PORT_SECRET_H

#include <stddef.h>
#include <stdint.h>

/** What -EPERM of port_secret_read is about, as text: what is allowed on this system. */
const char *port_secret_allowed(void);

/**
 * Read a file whole.
 *
 * @return its bytes; -EPERM: no regular file, of another user, or others than its owner may read or write it; -EFBIG: size_bytes
 *         do not hold it; or -errno. What was read before an error is wiped.
 */
int64_t port_secret_read(const char *path, void *data, size_t size_bytes);

/** Overwrite memory, also where a compiler sees that nobody reads it any more. */
void port_secret_wipe(void *data, size_t size_bytes);

#endif
