/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PIN of the command line, whatever it is: opened by its name, then set, programmed or captured. One table row a kind.
 *
 * All functions return 0 or -errno. -ENOTSUP: this pin cannot do that; -ENODEV: what drives it has gone. A function that a
 * kind has not at all is NULL: callers look first. capture_next, capture_begin and capture_end come together. None is called by two
 * threads at once.
 */
#ifndef BW_EDGE_PIN_H
#define BW_EDGE_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EDGE_PIN_ERROR_BYTES = 256 };

/* What instants of a pin are. */
enum edge_axis {
	EDGE_AXIS_COUNTER,  /* ticks of the processor's counter as port_counter_read() gives them: TGPIO, GPIO */
	EDGE_AXIS_CLOCK_NS, /* ns of a PTP clock, or of TAI: SDP, PPS */
};

/* What has become of what was programmed, since the pin was opened. */
struct edge_pin_counts {
	uint64_t fired;     /* pulses that began */
	uint64_t not_fired; /* instants that had passed when they were programmed, or overlapped a pulse */
	uint64_t overruns;  /* captures that were lost because nobody took them in time */
};

struct edge_pin;

struct edge_pin_kind {
	const char *name; /* before the colon */
	/**
	 * Open; sets pin->axis, and pin->state if it needs one.
	 *
	 * @param argument  what follows the colon
	 * @return 0, or -errno with one line in error; -EINVAL is bad input, all else a missing capability
	 */
	int (*open)(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes);
	/** Switch the output off and free all; called after a successful open only. */
	void (*close)(struct edge_pin *pin);
	/**
	 * Set the line at once. Real-time safe where the pin is.
	 *
	 * @param before, after  counter right before and after the change; the edge lies between. On `bench:gpio` it is at
	 *                       `after`: when the store has become visible. Either may be NULL
	 */
	int (*set)(struct edge_pin *pin, bool high, uint64_t *before, uint64_t *after);
	/**
	 * Program one pulse. One may be pending: a new one replaces it unless it has fired. An instant that has passed never
	 * fires and counts as not_fired; the call itself does not tell.
	 *
	 * @return 0; -EAGAIN: the device is behind, nothing was programmed; -EINVAL: no instant of this axis
	 */
	int (*fire_at)(struct edge_pin *pin, int64_t instant);
	/**
	 * Pulses at start, start + period, ...; those that have passed are left out.
	 *
	 * @param start_clock_ns  ns of the clock of the pin
	 * @return 0, -EAGAIN, -EINVAL (period)
	 */
	int (*periodic)(struct edge_pin *pin, int64_t start_clock_ns, int64_t period_ns);
	/** Time of the clock that the pin's instants are of; NULL: they are of TAI, or counts. */
	int (*now_clock_ns)(const struct edge_pin *pin, int64_t *now_clock_ns);
	/** Output low, nothing pending. */
	int (*stop)(struct edge_pin *pin);
	/** Capture rising edges from now on; earlier ones are not delivered. */
	int (*capture_begin)(struct edge_pin *pin);
	/**
	 * Wait for the next capture.
	 *
	 * @param sequence    number of the edge since capture_begin, from 0: a gap is a lost one. May be NULL
	 * @param timeout_ns  0: only look
	 * @return 0; -ETIMEDOUT; -EINTR: the process is to end; -ENODEV: nobody serves the device any more
	 */
	int (*capture_next)(struct edge_pin *pin, uint64_t *sequence, int64_t *instant, int64_t timeout_ns);
	int (*capture_end)(struct edge_pin *pin);
	/** May be NULL where nothing counts. `fired` is exact once the device's time has passed the instant by some ms. */
	int (*counts)(struct edge_pin *pin, struct edge_pin_counts *counts);
};

struct edge_pin {
	const char *text; /* as it was given: outlives the pin */
	const struct edge_pin_kind *kind;
	enum edge_axis axis;
	int tai_utc_s;       /* TAI - UTC where the kernel does not know it: of pins whose edges the system's clock stamps */
	uint64_t counter_hz; /* EDGE_AXIS_COUNTER: ticks per second, as the device has them; else 0 */
	void *state;
};

/**
 * Open a pin: `KIND:ARGUMENT` (pin.c).
 *
 * @param tai_utc_s  TAI - UTC where the kernel does not know it
 * @return 0, or -errno with one line in error (-EINVAL: bad input)
 */
int edge_pin_open(struct edge_pin *pin, const char *text, int tai_utc_s, char *error, size_t error_bytes);
void edge_pin_close(struct edge_pin *pin);
/** Exit code (options.h) for a failure of edge_pin_open. */
int edge_pin_exit_code(int err);

/* `bench:sdp-out`, `card-pps`, `tgpio-out`, `gpio`, `tgpio-in`, `sdp-in`: the virtual bench's edge device (pin_bench.c). */
extern const struct edge_pin_kind edge_pin_bench;
extern const struct edge_pin_kind edge_pin_ptp, edge_pin_tgpio, edge_pin_gpio, edge_pin_pps;

#endif
