/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BW_STACKD_SERVE_H
#define BW_STACKD_SERVE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Serve an interface until SIGTERM or SIGINT.
 *
 * @param group  whose members may have ports, besides root and the service's own user; negative: nobody else
 * @return an exit code, with a line on stderr
 */
int stackd_serve(const char *interface, const char *socket_path, int64_t group, bool generic);

/** Print what a service says of itself. @return an exit code, with a line on stderr */
int stackd_show(const char *socket_path);

#endif
