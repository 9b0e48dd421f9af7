/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BW_NETSTAT_PORT_ASK_H
#define BW_NETSTAT_PORT_ASK_H

/**
 * Ask a service for its statistics.
 *
 * @param text  receives it, ended by a zero; the caller frees it
 * @return 0 or -errno: -ENAMETOOLONG (no path of a socket), -EPROTO (a service of another version), …
 */
int ask_statistics(const char *socket_path, char **text);

#endif
