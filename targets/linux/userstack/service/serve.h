/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BW_STACKD_SERVE_H
#define BW_STACKD_SERVE_H

#include <stdbool.h>
#include <stdint.h>

/* As struct service_command has them. */
int stackd_serve(const char *interface, const char *socket_path, int64_t group, bool generic);
int stackd_show(const char *socket_path);

#endif
