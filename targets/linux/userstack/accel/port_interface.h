/* SPDX-License-Identifier: Apache-2.0 */
/* The interface that the program's packets leave by, as the service tells of it. */
#ifndef BW_ACCEL_INTERFACE_H
#define BW_ACCEL_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stack.h"

struct stackd_answer;

/** Take over what the service has said at the beginning. */
void interface_begin(const struct stackd_answer *hello);
/** Its addresses and its MTU have changed: so do the stack's. */
void interface_follow(const struct stackd_answer *said);

bool interface_has_address(const struct stack_address *address);
/** Its number, 0 before the beginning. */
uint32_t interface_index(void);
const uint8_t *interface_mac(void);

#endif
