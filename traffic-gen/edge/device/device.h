/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edge device: from the commands of one guest and the lines of its clocks it computes edges, tick by tick of the
 * guest's counter, in order. Pure: no clock is read; who calls says up to which tick is decided.
 *
 * Wiring: sdp-out or card-pps drive the reference line, which is seen by channel 1 of the oscilloscope and by tgpio-in;
 * tgpio-out or gpio drive the other line: channel 2, and sdp-in. A line is high while one of its outputs is.
 */
#ifndef BW_EDGE_DEVICE_H
#define BW_EDGE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/card/page.h"
#include "edge/device/registers.h"

#define EDGE_NEVER UINT64_MAX

enum edge_line { EDGE_LINE_REFERENCE, EDGE_LINE_OTHER, EDGE_LINES };
enum edge_clock { EDGE_CLOCK_PHC, EDGE_CLOCK_CARD, EDGE_CLOCKS };

struct edge_event {
	uint64_t counter; /* of the guest */
	enum edge_line line;
	bool rising;
};

typedef void edge_sink(void *sink, const struct edge_event *event);

struct device_output {
	uint32_t tail;                /* of its ring */
	int taken;                    /* commands taken while the horizon is moved on once */
	bool command_held;            /* the next command was taken from the ring */
	struct edge_command command;
	bool high;
	uint64_t fall_at;                  /* EDGE_NEVER: software decides */
	uint64_t rise_at;                  /* EDGE_NEVER: none is coming, or its clock is not known */
	int64_t start_clock_ns, period_ns; /* of its own clock, a PHC or the card; period 0: not periodic */
	int64_t next_clock_ns;             /* of the same: instant of the next pulse; of rise_at */
	uint64_t fired, not_fired, replaced;
	uint64_t refused;             /* commands that cannot be, or came too late */
};

struct device_capture {
	uint32_t head;
	uint64_t from;     /* the guest's `from` that `sequence` belongs to */
	uint64_t sequence; /* rising edges since */
	uint64_t made, overruns;
	uint64_t unknown;  /* edges at a time when the clock was not known */
};

struct device {
	struct edge_registers *registers;
	uint64_t counter_hz;
	uint64_t horizon; /* all before this tick is decided; 0: not begun */
	bool known[EDGE_CLOCKS];
	struct card_line lines[EDGE_CLOCKS]; /* over the guest's counter */
	struct device_output outputs[EDGE_OUTPUTS];
	struct device_capture captures[EDGE_CAPTURES];
	edge_sink *sink;
	void *sink_argument;
};

/** Bind a device to its registers; commands of before are dropped. 10^8 <= counter_hz <= 10^10. */
void device_init(struct device *device, struct edge_registers *registers, uint64_t counter_hz, edge_sink *sink,
		 void *sink_argument);
/** Nothing happens before this tick; once. */
void device_begin(struct device *device, uint64_t horizon);
/**
 * Follow a clock by a new line from the horizon on. Periodic pulses whose instants the clock has jumped over are left out.
 *
 * @param line  over the guest's counter; NULL: the clock is not known now, and its outputs pause
 */
void device_set_line(struct device *device, enum edge_clock clock, const struct card_line *line);
/** Decide everything before a tick; a tick that is decided already does nothing. */
void device_advance(struct device *device, uint64_t horizon);

#endif
