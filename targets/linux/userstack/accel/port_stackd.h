/* SPDX-License-Identifier: Apache-2.0 */
/* What the program asks of the service of its interface. */
#ifndef BW_ACCEL_STACKD_H
#define BW_ACCEL_STACKD_H

#include <stdint.h>

#include "service/stackd.h"

/** Connect to the service. @return a descriptor or -errno */
int stackd_connect(const char *path);

/** What hears of events, and of answers that nobody waits for; called by stackd_ask() and stackd_hear(). */
typedef void stackd_heard(const struct stackd_answer *event);

/**
 * Ask, and wait for the answer.
 *
 * @param request     its version and number are filled in
 * @param descriptor  goes with it; negative: none
 * @param descriptors two that come with the answer; NULL: none may. Negative where none came
 * @return 0: *answer says what came of it; -errno: the service is gone
 */
int stackd_ask(int service, struct stackd_request *request, int descriptor, struct stackd_answer *answer, int descriptors[2],
	       stackd_heard *heard);
/** Ask; the answer comes by stackd_hear(). @return 0 or -errno */
int stackd_tell(int service, struct stackd_request *request, int descriptor);
/** Take in what waits, without blocking. @return 0, or -errno: the service is gone */
int stackd_hear(int service, stackd_heard *heard);

#endif
