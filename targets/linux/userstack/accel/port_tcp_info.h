/* SPDX-License-Identifier: Apache-2.0 */
/* TCP_INFO of a connection that the user-mode stack has. */
#ifndef BW_ACCEL_TCP_INFO_H
#define BW_ACCEL_TCP_INFO_H

#include <sys/socket.h>

#include "core/stack.h"

/** As getsockopt(2): as long as this kernel's; what the stack does not know is 0. @param fd  of the kernel's socket behind it @return 0 or -errno */
int tcp_info_get(const struct stack_socket *stack, int fd, void *value, socklen_t *length);

#endif
