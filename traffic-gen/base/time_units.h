/* SPDX-License-Identifier: Apache-2.0 */
/* Units of time in each other. */
#ifndef BW_TIME_UNITS_H
#define BW_TIME_UNITS_H

#include <stdint.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_US INT64_C(1000)
#define US_PER_S INT64_C(1000000)
#define US_PER_MS INT64_C(1000)
#define MS_PER_S INT64_C(1000)

#endif
