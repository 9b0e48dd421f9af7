/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that several results have in common (docs/native-tools.md, "Answers"). */
#ifndef BW_SUMMARY_H
#define BW_SUMMARY_H

#include "base/histogram.h"
#include "base/json.h"
#include "plan/plan.h"
#include "port/port.h"
#include "time/stepwatch.h"
#include "time/twoway.h"

/** Write a SUMMARY of a histogram; NULL is written as an empty one. */
void summary_histogram(struct json *json, const char *key, const struct histogram *histogram);
/** Write the elements of "clock_steps" that a watch of the local clock has recorded, into an open array. */
void summary_steps(struct json *json, const struct stepwatch *watch);
/** Write the array "series": local time, offset and bound of each exchange that was kept. */
void summary_series(struct json *json, const struct twoway *twoway);
/** Write what a stream is by its plan, as members of an open object. */
void summary_stream(struct json *json, const struct stream *stream);
/** Write "carrier": by what the messages of a plan go. `rtdip`; else the libraries that are loaded before others; else `kernel`. */
void summary_carrier(struct json *json, const struct plan *plan);
/** Write the "scheduling" object. */
void summary_scheduling(struct json *json, const struct port_scheduling *scheduling);
/** Add what was refused, and the errno it was refused with, to the note; what does not fit is cut off. */
void summary_add_note(struct port_scheduling *scheduling, const char *what, int err);

#endif
