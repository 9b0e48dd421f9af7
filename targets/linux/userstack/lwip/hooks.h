/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP calls of the stack. */
#ifndef BW_LWIP_HOOKS_H
#define BW_LWIP_HOOKS_H

#include "lwip/ip_addr.h"

uint32_t stack_initial_sequence_number(const ip_addr_t *local_ip, uint16_t local_port, const ip_addr_t *remote_ip, uint16_t remote_port);

#define LWIP_HOOK_TCP_ISN stack_initial_sequence_number

#endif
