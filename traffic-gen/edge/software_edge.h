/* SPDX-License-Identifier: Apache-2.0 */
/* An edge that software makes: awake a little before, looking at the clock until the instant has come, then the line is set. */
#ifndef BW_EDGE_SOFTWARE_EDGE_H
#define BW_EDGE_SOFTWARE_EDGE_H

#include <stdint.h>

#include "pin.h"
#include "port.h"

#define SOFTWARE_EDGE_LEAD_NS INT64_C(150000) /* awake so long before: longer than a wake-up takes */
#define SOFTWARE_EDGE_PULSE_NS INT64_C(100000)

/**
 * Make one pulse at an instant of the system's TAI. Real-time safe.
 *
 * @param hz        of the counter, which bounds the wait should the clock be set back
 * @param pulse_ns  how long the line is high, at least
 * @return 0; -ETIME: the instant had passed; -EINTR; or -errno of the pin
 */
int software_edge_make(struct edge_pin *output, const struct port_tai *tai, uint64_t hz, int64_t at_ns, int64_t pulse_ns);
/** The line has just been set: hold it, then set it low. */
int software_edge_end(struct edge_pin *output, int64_t pulse_ns);

#endif
