/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers of the virtual bench's edge device: what follows the timecard's page (clock/page.h) in the memory that the
 * bench's host and one guest share. Little endian; private to bw-edge.
 *
 * All times are ticks of the guest's counter (TSC) unless they are named otherwise. The device never acts by the moment at
 * which the host looks: each command carries the tick at which it took effect, and edges are computed from commands,
 * lines and their own instants. So the host may be late, and stall, without moving an edge.
 *
 * The horizon. The host may decide what happens up to a tick only if no command of an earlier tick can come any more. So
 * a command is announced (`begun`) before its tick is read and until it is in the ring (`head`): a host that reads the
 * counter and then finds nothing announced knows that later commands have later ticks. A command that stays announced
 * holds the horizon for EDGE_BEGUN_MAX_NS at most; its writer is then taken for dead, and what it says later is refused.
 *
 * Each field has one writing side, in the guest one process a pin (EDGE_LOCK_PINS). Neither side trusts the other: every
 * figure is checked, indices are taken modulo the size of a ring, and nothing waits without an end.
 */
#ifndef BW_EDGE_REGISTERS_H
#define BW_EDGE_REGISTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/card/page.h"

#define EDGE_MAPPING_BYTES 32768             /* of the timecard's page and the registers together */
#define EDGE_OFFSET CARD_PAGE_BYTES
#define EDGE_MAGIC UINT64_C(0x3130454744455742) /* "BWEDGE01": the last two digits are the version */
#define EDGE_BEGUN_MAX_NS INT64_C(1000000000)
#define EDGE_ART_HZ UINT64_C(38400000)       /* Intel's Always Running Timer: 26.04 ns */
#define EDGE_SDP_HZ UINT64_C(125000000)      /* cycles of the network card: 8 ns */
#define EDGE_PERIOD_MIN_NS INT64_C(20000)
#define EDGE_PERIOD_MAX_NS INT64_C(10000000000)
#define EDGE_PULSE_NS INT64_C(100000)        /* a pulse is high for half its period, or for this long if that is shorter */

enum edge_output_id { EDGE_SDP_OUT, EDGE_CARD_PPS, EDGE_TGPIO_OUT, EDGE_GPIO, EDGE_OUTPUTS };
enum edge_capture_id { EDGE_TGPIO_IN, EDGE_SDP_IN, EDGE_CAPTURES };

enum edge_command_kind {
	EDGE_STOP = 1,     /* the output goes low and stays so */
	EDGE_PERIODIC = 2, /* sdp-out, card-pps: first = first instant in ns of their clock, second = period in ns */
	EDGE_FIRE = 3,     /* tgpio-out: first = value of ART; replaces a value that has not fired */
	EDGE_LEVEL = 4,    /* gpio: first = 0 or 1 */
};

enum { EDGE_RING_COMMANDS = 128, EDGE_RING_CAPTURES = 256 };

/* Locks of the mapping (port_page_lock); those of enum card_lock come first. */
enum edge_lock { EDGE_LOCK_SERVE = 8, EDGE_LOCK_FOLLOW = 9, EDGE_LOCK_PINS = 16 /* outputs, then captures */ };

struct edge_command {
	uint64_t at;  /* tick at which it took effect; not before that of the command before */
	uint32_t kind;
	uint32_t reserved;
	int64_t first, second;
};

struct edge_slot {
	_Atomic uint64_t at, kind, first, second;
};

/* Commands of one output. head - tail <= EDGE_RING_COMMANDS. */
struct edge_output {
	_Alignas(64) _Atomic uint32_t begun; /* guest: number of the command that is being made; = head: none */
	_Atomic uint32_t head;               /* guest: commands made */
	_Atomic uint32_t level;              /* guest: the line that software sets (gpio) */
	_Alignas(64) _Atomic uint32_t tail;  /* host: commands taken */
	_Atomic uint64_t fired;              /* host: pulses begun, of all times */
	_Atomic uint64_t not_fired;          /* host: values in the past when they were programmed, or overlapping a pulse */
	_Alignas(64) struct edge_slot ring[EDGE_RING_COMMANDS];
};

/* Captured edges. The host drops what does not fit and counts it. */
struct edge_captured {
	_Atomic uint64_t sequence; /* rising edges since the capture began, from 0 */
	_Atomic int64_t instant;   /* tgpio-in: ART; sdp-in: ns of the PHC */
};

struct edge_capture {
	_Alignas(64) _Atomic uint64_t from; /* guest: tick from which it captures; 0: off */
	_Atomic uint32_t tail;              /* guest: captures taken */
	_Alignas(64) _Atomic uint32_t head; /* host: captures made */
	_Atomic uint64_t overruns;          /* host: captures that did not fit, of all times */
	_Alignas(64) struct edge_captured ring[EDGE_RING_CAPTURES];
};

/* The one offset of the host's counter to the guest's; written once by `follow-phc`. */
struct edge_calibration {
	_Atomic uint32_t sequence; /* odd: being written; 0: never */
	uint32_t reserved;
	_Atomic uint64_t offset;   /* host - guest, in ticks, modulo 2^64 */
	_Atomic uint64_t bound;    /* in ticks */
};

struct edge_registers {
	_Atomic uint64_t magic;      /* host */
	_Atomic uint64_t counter_hz; /* host: ticks per second; with EDGE_ART_HZ the ratio of ART, as CPUID 15H has it.
	                              * 10^8..10^10 */
	_Atomic uint64_t served;     /* host: a new number for each server */
	_Atomic uint64_t horizon;    /* host: all edges before this tick are decided, and captured */
	_Alignas(64) struct edge_calibration calibration; /* guest */
	_Alignas(256) struct card_posting phc_line;         /* guest: guest's ticks -> ns of the PHC */
	_Alignas(1024) struct edge_output outputs[EDGE_OUTPUTS];
	_Alignas(1024) struct edge_capture captures[EDGE_CAPTURES];
};

_Static_assert(EDGE_OFFSET + sizeof(struct edge_registers) <= EDGE_MAPPING_BYTES, "the mapping");

extern const char *const edge_output_names[EDGE_OUTPUTS];
extern const char *const edge_capture_names[EDGE_CAPTURES];

/* ---- grids --------------------------------------------------------------------------------------------------------- */

/*
 * Counters of the hardware that run from the same oscillator as the guest's counter, from 0 at its 0: ART, and the cycles
 * of the network card. counter_hz <= 10^10, grid_hz <= 2 * 10^8.
 */
/** Value at a tick: the last one at or before it. */
uint64_t edge_grid_at(uint64_t counter, uint64_t counter_hz, uint64_t grid_hz);
/** First tick at or after the instant of a value. */
uint64_t edge_grid_tick(uint64_t value, uint64_t counter_hz, uint64_t grid_hz);
/** First value at or after a tick. */
uint64_t edge_grid_from(uint64_t counter, uint64_t counter_hz, uint64_t grid_hz);

/* ---- the guest's side: outputs -------------------------------------------------------------------------------------- */

/** Announce a command. @return 0, or -EAGAIN: the ring is full, the host is behind */
int edge_command_begin(struct edge_output *output);
/** Make the command that was announced; `at` was read from the counter after the announcement. */
void edge_command_end(struct edge_output *output, const struct edge_command *command);
/** Take an announcement back; also after a writer that died, before the first command of the next. */
void edge_command_abandon(struct edge_output *output);

/* ---- the host's side: outputs --------------------------------------------------------------------------------------- */

/** True while a command is announced. Read the counter before. */
bool edge_command_pending(const struct edge_output *output);
/**
 * Take the oldest command.
 *
 * @param tail  commands taken by the host, its own copy; moved on
 * @return 0; -EAGAIN: there is none; -EBADMSG: the guest's indices cannot be, all commands are dropped
 */
int edge_command_take(struct edge_output *output, uint32_t *tail, struct edge_command *command);

/* ---- captures ------------------------------------------------------------------------------------------------------- */

/** Host: add a capture. @return 0, or -ENOSPC: counted */
int edge_capture_put(struct edge_capture *capture, uint32_t *head, uint64_t sequence, int64_t instant);
/** Guest: begin to capture edges from a tick on; what was there is dropped. */
void edge_capture_start(struct edge_capture *capture, uint64_t from);
void edge_capture_stop(struct edge_capture *capture);
/** Guest: take the oldest capture. @return 0; -EAGAIN: there is none; -EBADMSG: the host's index cannot be */
int edge_capture_take(struct edge_capture *capture, uint64_t *sequence, int64_t *instant);

/* ---- calibration ---------------------------------------------------------------------------------------------------- */

void edge_calibration_write(struct edge_calibration *calibration, uint64_t offset, uint64_t bound);
/** @return 0; -ENODATA: there is none; -EAGAIN: it is being written */
int edge_calibration_read(const struct edge_calibration *calibration, uint64_t *offset, uint64_t *bound);

#endif
