/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of the time service: one writer (bw-timed) tells any number of readers how the processor's counter becomes
 * UTC. A file that all map, readers read-only; little endian; private to this project: readers use bwtime.h.
 *
 * Line and status are published by sequence locks with two copies (as time/clockline.h): a reader that has preempted the
 * writer finds a whole one, also when the writer was killed half-way. Readers take nothing on trust: what cannot be is refused
 * with a reason (timepage_line_check), figures whose use could overflow too.
 *
 * Signs: offset_ns positive: this clock is ahead of the server.
 */
#ifndef BW_TIMESERVICE_PAGE_H
#define BW_TIMESERVICE_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeservice/scatter.h"

#define TIMEPAGE_MAGIC UINT64_C(0x454d495431305742) /* "BW01TIME" */
#define TIMEPAGE_UTC_MAX_NS (INT64_C(1) << 62)
#define TIMEPAGE_AGE_MAX_NS (INT64_C(1) << 58)      /* nine years: usable_until_ticks lies at most so far from base_ticks */
#define TIMEPAGE_MULT_MIN (UINT64_C(1) << 44)       /* 16 GHz */
#define TIMEPAGE_MULT_MAX (UINT64_C(1) << 58)       /* 1 MHz: 1024 ns a tick at most */
#define TIMEPAGE_BOUND_MAX_NS INT64_C(1000000000000)
#define TIMEPAGE_RATE_MAX UINT64_C(1000000000)      /* of growth_ppb */
#define TIMEPAGE_SLEW_SHIFT 10                      /* mult and settled_mult differ by less than mult / 2^10 */

enum {
	TIMEPAGE_VERSION = 2,
	TIMEPAGE_LINE_WORDS = 24,
	TIMEPAGE_BOOT_BYTES = 16,
	TIMEPAGE_SERVERS = 16,
	TIMEPAGE_HISTORY = 256,
	TIMEPAGE_REJECTS = 24,
	TIMEPAGE_TEXT_BYTES = 128,
	TIMEPAGE_ADDRESS_BYTES = 64,
};

enum timepage_state {
	TIMEPAGE_NONE = 0,           /* nothing was published yet */
	TIMEPAGE_STARTING = 1,
	TIMEPAGE_SYNCHRONISED = 2,
	TIMEPAGE_HOLDOVER = 3,       /* no server is heard: time by the rate that was learnt, the bound grows */
	TIMEPAGE_UNSYNCHRONISED = 4, /* there is no time with a bound: see reason */
	TIMEPAGE_REFUSED = 5,        /* the counter cannot serve: see reason and the status' text */
	TIMEPAGE_ENDED = 6,          /* the service has ended; its last line, if that gave a time, holds until usable_until_ticks */
};

enum timepage_reason {
	TIMEPAGE_REASON_NONE = 0,
	TIMEPAGE_REASON_STARTING,             /* too few replies yet */
	TIMEPAGE_REASON_NO_SERVER,            /* no server answers */
	TIMEPAGE_REASON_DENIED,               /* the servers deny service (kiss-of-death) */
	TIMEPAGE_REASON_SERVER_UNSYNCHRONISED, /* servers answer, but have no time that can be used */
	TIMEPAGE_REASON_NO_MAJORITY,          /* the servers contradict each other */
	TIMEPAGE_REASON_CONTRADICTION,        /* a server contradicts what it said before */
	TIMEPAGE_REASON_BOUND,                /* the bound has become wider than is allowed */
	TIMEPAGE_REASON_COUNTER_JUMPED,       /* the counter stopped or jumped: paused, suspended, moved */
	TIMEPAGE_REASON_COUNTER_REFUSED,      /* the counter cannot serve */
	TIMEPAGE_REASON_HELD,                 /* asked to hold: no server is asked */
	TIMEPAGE_REASON_ENDED,                /* the service has ended */
	TIMEPAGE_REASON_SETTING,              /* wrong configuration */
	TIMEPAGE_REASON_NOT_AUTHENTICATED,    /* servers answer, but not with the key that they share with this machine */
	TIMEPAGE_REASON_LEAP,                 /* an announced leap second has come, and no server has told the time since */
	TIMEPAGE_REASON_RATE,                 /* servers want to be asked less often (kiss code RATE) */
	TIMEPAGE_REASON_REMADE,               /* of a page that was taken away: another one is in its place */
	TIMEPAGE_REASONS,
};

/* All that a reader needs. */
struct timepage_line {
	uint64_t base_ticks;
	int64_t base_utc_ns;         /* at base_ticks */
	uint64_t mult;               /* ns a tick * 2^48, from base_ticks on */
	uint64_t settled_ticks;      /* second segment, from here on: a correction is slewed away until then; not before base_ticks */
	int64_t settled_utc_ns;      /* timepage_publish fills it in: what the first segment gives there */
	uint64_t settled_mult;       /* also holds before base_ticks */
	int64_t low_ns, high_ns;     /* true UTC at base_ticks is within published - low_ns .. published + high_ns, the slew included */
	uint64_t growth_ppb;         /* growth of both with distance from base_ticks, as far as the counter's drift is within its limit */
	struct scatter scatter;      /* variance of published - true at base_ticks, and its growth: the U of readers */
	uint64_t heard_ticks;        /* of the last exchange that this rests on: since then the time runs free */
	uint64_t disruptions;        /* how often time was withdrawn or stepped, counted since the boot */
	uint64_t disrupted_ticks;    /* when that was last seen: the line tells nothing of readings before; 0: never */
	uint64_t usable_until_ticks; /* afterwards: not synchronised */
	uint64_t epoch;              /* + 1 at every step that was not slewed */
	uint64_t publications;       /* timepage_publish counts them, on from a service before */
	int64_t step_ns;             /* of the last epoch */
	uint32_t state;              /* enum timepage_state */
	uint32_t reason;             /* enum timepage_reason */
	int32_t leap;                /* leap indicator of the servers, 0 to 3 */
	int32_t stratum;             /* of this clock; 0: unknown, else to 16 */
	int32_t tai_utc_s;           /* TAI - UTC; 0: unknown */
};

enum timepage_server_state {
	TIMEPAGE_SERVER_UNKNOWN = 0,
	TIMEPAGE_SERVER_SELECTED,    /* the best one */
	TIMEPAGE_SERVER_COMBINED,    /* used too */
	TIMEPAGE_SERVER_FALSETICKER, /* outside the majority */
	TIMEPAGE_SERVER_UNFIT,       /* answers, but not synchronised, too far, contradictory */
	TIMEPAGE_SERVER_UNREACHABLE,
	TIMEPAGE_SERVER_DENIED,      /* asked us to stop */
};

struct timepage_server {
	char address[TIMEPAGE_ADDRESS_BYTES]; /* ADDRESS:PORT */
	uint32_t state;                       /* enum timepage_server_state */
	uint32_t reach;                       /* the last eight batches, the newest in bit 0 */
	int32_t stratum, leap;
	uint32_t kernel_stamps, interleaved, authenticated; /* 0 or 1; authenticated: the last good reply was */
	uint32_t key;                         /* id of the symmetric key; 0: none */
	uint64_t heard_ticks;                 /* counter at the last good reply; 0: never */
	int64_t offset_ns, delay_ns, bound_ns, root_delay_ns, root_dispersion_ns;
	uint64_t sent, received;
	uint64_t rejected[TIMEPAGE_REJECTS];  /* by the service's own list of reasons */
};

struct timepage_moment {
	int64_t utc_ns, offset_ns, bound_ns, u_ns, rate_ppb;
};

/* For bw-timectl. */
struct timepage_status {
	char version[32];
	char text[TIMEPAGE_TEXT_BYTES]; /* why, in words, where the line's reason says too little */
	uint64_t pid;
	int64_t started_utc_ns;
	int64_t interval_ns;
	uint64_t counter_kind;          /* enum port_counter_kind */
	uint64_t counter_hz;            /* nominal */
	int64_t rate_ppb;               /* of the counter against nominal; positive: it is fast */
	uint64_t holding;               /* 1: asked to hold */
	uint64_t feed;                  /* what is fed: 0 none, 1 kernel, 2 chrony */
	uint64_t batches, steps;
	uint64_t server_count;          /* of servers[] */
	uint64_t history_count;         /* of history[], the oldest first */
	struct timepage_server servers[TIMEPAGE_SERVERS];
	struct timepage_moment history[TIMEPAGE_HISTORY];
};

enum { TIMEPAGE_STATUS_WORDS = sizeof(struct timepage_status) / 8 };
_Static_assert(sizeof(struct timepage_status) % 8 == 0, "whole words");

struct timepage_line_posting {
	_Atomic uint32_t sequence; /* odd: copy 0 is being written, read copy 1; even: the other way round */
	_Alignas(64) _Atomic uint64_t copies[2][TIMEPAGE_LINE_WORDS];
};

struct timepage_status_posting {
	_Atomic uint32_t sequence;
	_Alignas(64) _Atomic uint64_t copies[2][TIMEPAGE_STATUS_WORDS];
};

/* The file. */
struct timepage_image {
	_Atomic uint64_t magic;       /* written last; 0 while the rest is set up */
	_Atomic uint32_t version, size_bytes;
	_Atomic uint32_t counter_kind; /* enum port_counter_kind */
	_Atomic uint32_t reserved;
	_Atomic uint64_t counter_hz;
	_Atomic uint64_t boot[TIMEPAGE_BOOT_BYTES / 8]; /* port_boot_id */
	_Alignas(256) struct timepage_line_posting line;
	_Alignas(256) struct timepage_status_posting status;
};

enum { TIMEPAGE_BYTES = 65536 };
_Static_assert(sizeof(struct timepage_image) <= TIMEPAGE_BYTES, "a page");

/* What ties a page to its machine. */
struct timepage_identity {
	uint32_t counter_kind;
	uint64_t counter_hz; /* nominal; readers do not compare it */
	uint64_t boot[TIMEPAGE_BOOT_BYTES / 8];
};

/* ---- pure: figures and postings ---------------------------------------------------------------------------------- */

/** UTC by a line. Right for a line that timepage_line_check accepts, within TIMEPAGE_AGE_MAX_NS of base_ticks. */
int64_t timepage_utc_ns(const struct timepage_line *line, uint64_t ticks);
/** Ticks from base_ticks on until a line that timepage_line_check accepts is not usable any more; 0: it never was. */
uint64_t timepage_usable_ticks(const struct timepage_line *line);
/** Whether a line that timepage_line_check accepts is usable no longer than until the leap second that it announces. */
bool timepage_ends_at_leap(const struct timepage_line *line);
/** How far true UTC may be below and above timepage_utc_ns, rounding included. Right for a line that timepage_line_check accepts. */
void timepage_interval_ns(const struct timepage_line *line, uint64_t ticks, int64_t *low_ns, int64_t *high_ns);
/** The larger of the two: |timepage_utc_ns - true| is at most this. */
int64_t timepage_bound_ns(const struct timepage_line *line, uint64_t ticks);
/** U (k = 2) of timepage_utc_ns, never more than the bound. */
int64_t timepage_u_ns(const struct timepage_line *line, uint64_t ticks);
/** @return 0, or -EBADMSG: these figures cannot be, or could overflow */
int timepage_line_check(const struct timepage_line *line);
const char *timepage_state_name(uint32_t state);
const char *timepage_reason_name(uint32_t reason);
const char *timepage_server_state_name(uint32_t state);

/** Publish a line as it is. One writer. */
void timepage_line_write(struct timepage_line_posting *posting, const struct timepage_line *line);
/**
 * Read the current line. Real-time safe.
 *
 * @param sequence  receives the number that stays the same until the next publication
 * @return 0; -ENODATA: none was published; -EBADMSG: its figures cannot be; -EAGAIN: it changed all the time. *line and
 *         *sequence are written on success alone.
 */
int timepage_line_read(const struct timepage_line_posting *posting, struct timepage_line *line, uint32_t *sequence);
void timepage_status_write(struct timepage_status_posting *posting, const struct timepage_status *status);
/** As timepage_line_read; texts are ended, counts are in their limits. */
int timepage_status_read(const struct timepage_status_posting *posting, struct timepage_status *status);

/**
 * Look whether an image is a page of this machine, boot and counter.
 *
 * @param why  receives a constant text when it is not
 * @return 0; -EBADMSG: no page, or a damaged one; -EPROTO: of another version; -ENOENT: of another boot, or not set up yet;
 *         -ENOTSUP: of another counter
 */
int timepage_image_check(const struct timepage_image *image, const struct timepage_identity *here, const char **why);

/* ---- the writer -------------------------------------------------------------------------------------------------- */

struct timepage; /* opaque: the page of a service, locked against a second one */

/**
 * Make the page, or take over what a service of this boot left: publications and epoch go on, attached readers stay attached. One of
 * another version, or that is damaged, is replaced by a new file.
 *
 * @param path  NULL: what BWTIME_PAGE says, or else the system's place
 * @return 0; -EBUSY: another service has it; -EPERM: a file is there that is not ours, or that others may write to; or -errno
 */
int timepage_create(const char *path, uint32_t counter_kind, uint64_t counter_hz, struct timepage **page_out);
/**
 * Look whether the file is still there. One that was taken away is made anew, with what was published last; who has the old one finds
 * it withdrawn, and looks for the new one.
 *
 * @return 0: it is there; 1: it was made anew; -EBUSY: another service has its place; or -errno: it is to be tried again
 */
int timepage_keep(struct timepage *page);
/** The line that was taken over, or was published last; state TIMEPAGE_NONE: none. */
const struct timepage_line *timepage_last(const struct timepage *page);
/**
 * Publish a line; settled_utc_ns and publications are filled in.
 *
 * @return 0, or -EINVAL: readers would refuse it (timepage_line_check), nothing was published
 */
int timepage_publish(struct timepage *page, const struct timepage_line *line);
void timepage_publish_status(struct timepage *page, const struct timepage_status *status);
/** Give the page back; the file stays. */
void timepage_close(struct timepage *page);

#endif
