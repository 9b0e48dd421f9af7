/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BW_ACCEL_SIGNALS_H
#define BW_ACCEL_SIGNALS_H

/** @return how many handlers without SA_RESTART this thread has run: a wait ends for those, and goes on after others where its call does */
unsigned int signals_interruptions(void);

#endif
