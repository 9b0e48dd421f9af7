/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "clock/clock_verbs.h"
#include "port/port.h"
#include "config/verb_table.h"

static const struct verb verbs[] = {
	{ "compare", verb_compare, "measure one clock against another" },
	{ "latency", verb_latency, "measure what reading a clock costs" },
	{ "card", verb_card, "serve, publish or calibrate the virtual timecard" },
	{ NULL, NULL, NULL },
};

static const struct verb card_verbs[] = {
	{ "serve", card_serve, "on the host: answer calibrations and publish time" },
	{ "publish", card_publish, "in a guest: publish this machine's own time" },
	{ "calibrate", card_trials, "in a guest: offset of the host's counter, trial by trial" },
	{ NULL, NULL, NULL },
};

int verb_card(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-clock card", .verbs = card_verbs };

	return verb_table_run(&table, argc, argv);
}

int main(int argc, char **argv)
{
	static const struct verb_table table = {
		.name = "bw-clock",
		.verbs = verbs,
		.more = "CLOCK is one of: realtime, realtime-coarse, tai, monotonic-raw, tsc, phc:/dev/ptpN, card[:PATH],\n"
			"plugin:PATH[,ARGUMENTS], timeservice[:PAGE].\n",
		.begin = port_init,
	};

	return verb_table_run(&table, argc, argv);
}
