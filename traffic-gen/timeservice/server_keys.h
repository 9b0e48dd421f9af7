/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that servers name, from their file, ready to be used. */
#ifndef BW_TIMESERVICE_SERVER_KEYS_H
#define BW_TIMESERVICE_SERVER_KEYS_H

#include "timeservice/settings.h"

/**
 * Read the file of keys, if a server names one, and prepare each server's.
 *
 * @param error  receives one line
 * @return 0; -EINVAL, -ENOENT, -EPERM, -EACCES, -EFBIG: of the file; -ENOTSUP: this system has no AES-CMAC; or -errno. What was
 *         prepared stays for server_keys_close().
 */
int server_keys_open(struct settings *settings, char error[SETTINGS_ERROR_BYTES]);
void server_keys_close(struct settings *settings);

#endif
