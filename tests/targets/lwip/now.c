/* SPDX-License-Identifier: Apache-2.0 */
/* The time of lwIP's unit tests, for the loss recovery. */
#include "lwip/sys.h"
#include "recovery.h"

uint64_t stack_now_us(void)
{
	return (uint64_t)sys_now() * 1000;
}
