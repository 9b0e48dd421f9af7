/* SPDX-License-Identifier: Apache-2.0 */
/* What the library says to people. */
#ifndef BW_ACCEL_SAY_H
#define BW_ACCEL_SAY_H

/** Say a line on standard error, behind the program's name. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
