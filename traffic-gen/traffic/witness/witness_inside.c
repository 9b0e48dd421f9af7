/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/witness_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/witness/witness.h"

static const struct witness_options OPTIONS = {
	.priority = 99,
	.period_us = 2997, /* no part of any period of a pattern, so that no stream meets it each time */
	.threshold_us = 1000,
};

struct witness_inside {
	struct witness witness;
	FILE *file;
};

static void destroy(struct witness_inside *inside)
{
	witness_release(&inside->witness);
	if (inside->file)
		fclose(inside->file);
	free(inside);
}

int witness_inside_start(const char *path, int tai_utc_s, struct witness_inside **inside_out)
{
	struct witness_inside *inside = calloc(1, sizeof(*inside));
	int err;

	if (!inside)
		return -ENOMEM;
	inside->witness.options = &OPTIONS;
	inside->witness.period_ns = OPTIONS.period_us * 1000;
	port_tai_init(&inside->witness.tai, tai_utc_s);
	inside->file = fopen(path, "w");
	err = inside->file ? 0 : -errno;
	if (err)
		fprintf(stderr, WITNESS_TOOL ": %s: %s\n", path, strerror(-err));
	else
		err = witness_prepare(&inside->witness);
	if (!err)
		err = witness_start(&inside->witness, 0);
	if (err) {
		witness_stop(&inside->witness);
		destroy(inside);
		return err;
	}
	inside->witness.complete = true;
	*inside_out = inside;
	return 0;
}

int witness_inside_finish(struct witness_inside *inside)
{
	struct port_scheduling scheduling;
	struct json json;
	int err;

	if (!inside)
		return 0;
	scheduling = witness_stop(&inside->witness);
	json_init(&json, inside->file);
	err = witness_print_result(&json, &inside->witness, &scheduling);
	if (err)
		fprintf(stderr, WITNESS_TOOL ": the answer cannot be written: %s\n", strerror(-err));
	destroy(inside);
	return err;
}
