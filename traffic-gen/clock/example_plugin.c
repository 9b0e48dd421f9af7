/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worked example of a clock for bw-clock: a simulated time card. A vendor's plug-in replaces open, read and close by
 * calls of its library; everything else stays as it is.
 *
 *     cc -shared -fPIC -I traffic-gen/clock -o libexample.so example_plugin.c
 *     bw-clock compare --device plugin:./libexample.so,offset_ns=1500 --reference realtime
 *
 * Arguments, separated by commas: offset_ns=N (its time less this machine's), step_ns=N and step_after=N (after so many
 * readings it steps by so much), fail_after=N (after so many readings it is gone), bound_ns=N (what it says of itself).
 */
#include "clock/bw_clock_plugin.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define TAI_UTC_S 37 /* of the machine that it pretends to be on, where the kernel does not know */

struct card {
	int64_t offset_ns, step_ns, step_after, fail_after, bound_ns;
	int64_t reads;
	int64_t add_ns; /* to CLOCK_REALTIME: TAI - UTC */
};

/* Take "name=N". Return 0 or -EINVAL. */
static int take_argument(struct card *card, const char *text, size_t length)
{
	const struct {
		const char *name;
		int64_t *value;
	} table[] = {
		{ "offset_ns=", &card->offset_ns }, { "step_ns=", &card->step_ns }, { "step_after=", &card->step_after },
		{ "fail_after=", &card->fail_after }, { "bound_ns=", &card->bound_ns },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t name_length = strlen(table[i].name);
		char *end;

		if (length <= name_length || strncmp(text, table[i].name, name_length) != 0)
			continue;
		errno = 0;
		*table[i].value = strtoll(text + name_length, &end, 10);
		return errno || end != text + length ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int card_open(const char *arguments, void **state, char *error, size_t error_bytes)
{
	struct card *card = calloc(1, sizeof(*card));

	if (!card)
		return -ENOMEM;
	card->bound_ns = -1;
	while (*arguments) {
		size_t length = strcspn(arguments, ",");

		if (take_argument(card, arguments, length)) {
			snprintf(error, error_bytes, "\"%.*s\" is no argument of the example", (int)length, arguments);
			free(card);
			return -EINVAL;
		}
		arguments += length + (arguments[length] == ',');
	}
	/* CLOCK_TAI is CLOCK_REALTIME where nothing has told the kernel about leap seconds. */
	card->add_ns = now_ns(CLOCK_TAI) - now_ns(CLOCK_REALTIME) > NS_PER_S ? 0 : TAI_UTC_S * NS_PER_S;
	*state = card;
	return 0;
}

static int card_read(void *state, int64_t *tai_ns)
{
	struct card *card = state;
	int64_t reads = ++card->reads;

	if (card->fail_after && reads > card->fail_after)
		return -ENODEV;
	*tai_ns = now_ns(CLOCK_TAI) + card->add_ns + card->offset_ns +
		  (card->step_after && reads > card->step_after ? card->step_ns : 0);
	return 0;
}

static int64_t card_bound_ns(void *state)
{
	const struct card *card = state;

	return card->bound_ns;
}

static void card_facts(void *state, bw_clock_plugin_fact *fact, void *sink)
{
	(void)state;
	fact(sink, "serial_number", "EXAMPLE-0001");
	fact(sink, "synchronised_over", "none: it is this machine's own clock");
}

static void card_close(void *state)
{
	free(state);
}

const struct bw_clock_plugin *bw_clock_plugin(uint32_t version);

const struct bw_clock_plugin *bw_clock_plugin(uint32_t version)
{
	static const struct bw_clock_plugin table = {
		.version = BW_CLOCK_PLUGIN_VERSION,
		.size_bytes = sizeof(table),
		.name = "example",
		.open = card_open,
		.read = card_read,
		.bound_ns = card_bound_ns,
		.facts = card_facts,
		.close = card_close,
	};

	return version == BW_CLOCK_PLUGIN_VERSION ? &table : NULL;
}
