/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the time service: timeservice[:PAGE], read by its library, each reading with its bound. */
#include <errno.h>
#include <stdio.h>

#include "base/time_units.h"
#include "clock/source.h"
#include "timeservice/bwtime.h"
#include "timeservice/page.h"

/* The numbers of the library's results are Linux's; the names of errno are every system's. */
static int errno_of(int result)
{
	switch (result) {
	case BWTIME_OK:
		return 0;
	case BWTIME_NO_SYNC:
		return -ENODATA;
	case BWTIME_NO_SERVICE:
		return -ENOENT;
	case BWTIME_NO_MEMORY:
		return -ENOMEM;
	case BWTIME_DENIED:
		return -EACCES;
	case BWTIME_BAD_COUNTER:
		return -ENOTSUP;
	default:
		return -EBADMSG;
	}
}

static int read_service(struct source *source, int64_t *tai_ns)
{
	struct bwtime_stamp *stamp = &source->timeservice.stamp;
	int result = bwtime_now(source->timeservice.handle, stamp);

	if (result)
		return errno_of(result);
	if (stamp->bound_ns > source->timeservice.largest_bound_ns)
		source->timeservice.largest_bound_ns = stamp->bound_ns;
	*tai_ns = stamp->utc_ns + (stamp->tai_utc_s ? stamp->tai_utc_s : source->tai.tai_utc_s) * NS_PER_S;
	return 0;
}

static int open_service(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	int64_t tai_ns;
	int err = errno_of(bwtime_open(argument, BWTIME_TELL_STEPS, &source->timeservice.handle));

	if (err)
		return err;
	err = read_service(source, &tai_ns);
	if (!err)
		return 0;
	snprintf(error, error_bytes, "%s", bwtime_why(source->timeservice.handle));
	bwtime_close(source->timeservice.handle);
	source->timeservice.handle = NULL;
	return err;
}

static void close_service(struct source *source)
{
	bwtime_close(source->timeservice.handle);
	source->timeservice.handle = NULL;
}

static int64_t largest_bound_ns(const struct source *source)
{
	return source->timeservice.largest_bound_ns;
}

static struct source_error reading_error(const struct source *source)
{
	const struct bwtime_stamp *stamp = &source->timeservice.stamp;

	return (struct source_error){ stamp->utc_ns - stamp->earliest_utc_ns, stamp->latest_utc_ns - stamp->utc_ns, stamp->u_ns };
}

static int64_t step_ns(const struct source *source)
{
	return source->timeservice.stamp.stepped ? bwtime_last_step_ns(source->timeservice.handle) : 0;
}

static const char *why(const struct source *source, int err)
{
	(void)err;
	return bwtime_why(source->timeservice.handle);
}

static void facts_service(const struct source *source, struct json *json)
{
	const struct bwtime_stamp *stamp = &source->timeservice.stamp;
	struct bwtime_condition condition;

	json_int(json, "tai_utc_s", stamp->tai_utc_s ? stamp->tai_utc_s : source->tai.tai_utc_s);
	json_bool(json, "tai_utc_of_service", stamp->tai_utc_s != 0);
	json_int(json, "bound_ns", source->timeservice.largest_bound_ns);
	json_string(json, "state", timepage_state_name(stamp->state));
	json_uint(json, "epoch", stamp->epoch);
	json_uint(json, "publications", bwtime_publications(source->timeservice.handle));
	if (bwtime_condition(source->timeservice.handle, &condition) == 0) {
		json_int(json, "growth_ppb", condition.growth_ppb);
		json_uint(json, "disruptions", condition.disruptions);
	}
}

const struct source_kind source_timeservice = {
	.name = "timeservice",
	.takes_argument = true,
	.open = open_service,
	.close = close_service,
	.read = read_service,
	.bound_ns = largest_bound_ns,
	.reading_error = reading_error,
	.facts = facts_service,
	.step_ns = step_ns,
	.why = why,
};
