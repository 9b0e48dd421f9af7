/* SPDX-License-Identifier: Apache-2.0 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cost

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_point.h"

#if !defined(BW_BENCH_LTTNG_POINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BW_BENCH_LTTNG_POINT_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(cost, number, LTTNG_UST_TP_ARGS(int64_t, tag), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, tag, tag)))

#endif

#include <lttng/tracepoint-event.h>
