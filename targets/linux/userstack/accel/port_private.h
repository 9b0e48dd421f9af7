/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own descriptors, which lie out of the way of the program's. */
#ifndef BW_ACCEL_PRIVATE_H
#define BW_ACCEL_PRIVATE_H

#include <stdbool.h>

/** Move a descriptor out of the way of the program's. @return it, or -1 */
int private_move(int fd);
void private_close(int fd);
/** Whether a descriptor is this library's: programs that close all descriptors may not close it. */
bool private_owns(int fd);
/** @return the next of these behind `fd`, or -1; -1 begins */
int private_next(int fd);

#endif
