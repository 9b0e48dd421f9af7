/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the processor's counter is fit to serve as a clock. Facts are gathered; the rules that judge them are pure
 * functions, each with its reason as text.
 *
 * What only a time server or the hypervisor can tell (a guest that was paused together with its counter and its kernel's clocks), it
 * asks the hypervisor, where that has a page of the VMClock device.
 */
#ifndef BW_TIMESERVICE_COUNTER_CHECK_H
#define BW_TIMESERVICE_COUNTER_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/port_clock.h"
#include "port/port_vmclock.h"

enum { COUNTER_CLOCKSOURCE_BYTES = 32, COUNTER_REASON_BYTES = 160 };

enum counter_verdict {
	COUNTER_FIT = 0,
	COUNTER_ABSENT,        /* there is none that a program can read */
	COUNTER_NOT_INVARIANT, /* the processor does not promise one rate */
	COUNTER_NOT_TRUSTED,   /* the kernel keeps time by something slower: it has found this one wanting */
	COUNTER_OUT_OF_RANGE,  /* frequency */
	COUNTER_UNSTABLE,      /* frequency differs from one moment to the next */
	COUNTER_APART,         /* the processors' counters differ */
	COUNTER_DISRUPTED,     /* watch: the hypervisor says that it was: the guest was moved or paused */
	COUNTER_SUSPENDED,     /* watch: the machine was suspended meanwhile */
	COUNTER_JUMPED,        /* watch: it stopped or jumped against the kernel's clock */
	COUNTER_RATE_CHANGED,  /* watch: it runs at another rate: moved to another machine */
	COUNTER_VERDICTS,
};

/* Of the start. */
struct counter_facts {
	enum port_counter_kind kind;
	bool invariant;
	char clocksource[COUNTER_CLOCKSOURCE_BYTES]; /* what the kernel keeps time with; empty: not told */
	double hz, earlier_hz;  /* measured against MONOTONIC_RAW twice */
	uint64_t stated_hz;     /* by the architecture; 0: not told */
	int cpus, cpus_compared; /* that this process may use; that could be compared with the first one */
	int64_t apart_ns;       /* the largest difference of two processors that is proved: what no delay explains */
	int64_t apart_most_ns;  /* the largest difference that is possible */
};

/* Of two moments of the watch, the differences. */
struct counter_course {
	double counter_ns;    /* by the nominal frequency; negative: it went backwards */
	int64_t kernel_ns;    /* MONOTONIC_RAW */
	int64_t window_ns;    /* uncertainty of both readings together */
	int64_t suspended_ns;
	bool disrupted;       /* the hypervisor's marker has changed */
};

struct counter_moment {
	uint64_t ticks;
	int64_t monotonic_raw_ns, window_ns, suspended_ns;
	uint64_t marker; /* the hypervisor's */
};

struct counter_check {
	struct counter_facts facts;
	struct counter_moment last;
	struct counter_course course; /* of the last look */
	struct port_vmclock vmclock;
	int vmclock_error;            /* 0: it is read; -ENOENT: there is none; or -errno */
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

enum counter_verdict counter_judge(const struct counter_facts *facts);
enum counter_verdict counter_judge_course(const struct counter_course *course);
/** Why, in words with figures; "" where it is fit. */
void counter_reason(const struct counter_check *check, enum counter_verdict verdict, char *reason, size_t size_bytes);

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/** Gather the facts and judge them; takes less than a second. Threads on all processors compare them meanwhile. counter_check_end() afterwards. */
enum counter_verdict counter_check_begin(struct counter_check *check);
/** Look again, about every second; cheap. After a verdict other than COUNTER_FIT the next look begins anew from here. */
enum counter_verdict counter_check_watch(struct counter_check *check);
/** Close the hypervisor's page; one of zeros is left alone. */
void counter_check_end(struct counter_check *check);

#endif
