/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP calls of the stack. */
#ifndef BW_LWIP_HOOKS_H
#define BW_LWIP_HOOKS_H

#include "lwip/ip_addr.h"

uint32_t stack_initial_sequence_number(const ip_addr_t *local_ip, uint16_t local_port, const ip_addr_t *remote_ip, uint16_t remote_port);

#define LWIP_HOOK_TCP_ISN stack_initial_sequence_number

/** @return 1: it is one of the interface's addresses, of which lwIP's own has but the first; or 0 */
int stack_has_ipv4(const ip4_addr_t *ip);

#define LWIP_HOOK_IP4_IS_OWN stack_has_ipv4

/** @param listener  the callback's argument of what listens @return 1: no more connections may wait to be accepted; or 0 */
int stack_accept_queue_is_full(const void *listener);

#define LWIP_HOOK_TCP_ACCEPT_QUEUE_IS_FULL stack_accept_queue_is_full

#endif
