/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface of a clock that bw-clock loads from a shared object: a vendor's time card, a time service. C, stable: members
 * are only ever added at the end, and `size_bytes` says how many there are. example_plugin.c is a complete one.
 *
 *     bw-clock compare --device realtime --reference plugin:./libcard.so,unit=0
 *
 * The object exports one function:
 *
 *     const struct bw_clock_plugin *bw_clock_plugin(uint32_t version);
 *
 * which gets BW_CLOCK_PLUGIN_VERSION of the program and returns a table that lives as long as the object is loaded, or
 * NULL when it cannot serve that version. All calls of one open clock come from one thread at a time, not always the same.
 */
#ifndef BW_CLOCK_PLUGIN_H
#define BW_CLOCK_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define BW_CLOCK_PLUGIN_VERSION 1u
#define BW_CLOCK_PLUGIN_SYMBOL "bw_clock_plugin"

/* Receives one fact; both texts may go after the call. Keys: lower case, digits and underscores. */
typedef void bw_clock_plugin_fact(void *sink, const char *key, const char *value);

struct bw_clock_plugin {
	uint32_t version;    /* BW_CLOCK_PLUGIN_VERSION that the plug-in was built with */
	uint32_t size_bytes; /* sizeof(struct bw_clock_plugin) there */
	const char *name;    /* of the clock, for the records: "acme-tc100" */

	/*
	 * Open the clock. `arguments` is what stands behind the comma ("" when there is none). On failure write one line
	 * about it, of at most error_bytes with its end, and return -errno: -EINVAL arguments, -ENODEV or another one:
	 * the clock is missing. *state is handed to the other calls.
	 */
	int (*open)(const char *arguments, void **state, char *error, size_t error_bytes);

	/*
	 * Read it: TAI in nanoseconds since 1970-01-01 00:00:00 TAI. Return 0 or -errno; a failure ends the measurement.
	 * It is called in the measuring loop: no allocation, no lock that another process holds.
	 */
	int (*read)(void *state, int64_t *tai_ns);

	/* How far its reading may be from the time that it follows, in ns; negative: unknown. NULL: unknown. */
	int64_t (*bound_ns)(void *state);

	/* Tell its facts: serial number, firmware, what it is synchronised with and over which network. May be NULL. */
	void (*facts)(void *state, bw_clock_plugin_fact *fact, void *sink);

	void (*close)(void *state);
};

#endif
