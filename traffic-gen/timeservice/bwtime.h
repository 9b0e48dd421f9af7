/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbwtime: network time without a system call.
 *
 * The service bw-timed learns from time servers how the processor's counter becomes UTC, and publishes it with a hard bound of
 * the error. A reading here is one reading of that counter and one multiplication.
 *
 * One handle for each thread: a handle must not be used by two threads at once. A handle's time never goes backwards. Small
 * corrections are slewed by the service; after a larger one (a step) a handle gives no time any more until its owner has
 * taken note (bwtime_accept_step), unless it was opened with BWTIME_TELL_STEPS.
 *
 * No function prints, exits or waits. All but open, close and accept may be called in real-time threads: they call the system
 * only while there is no time to give, at most a few times a second, to see whether the service is there by now.
 *
 * C99 and C++; of other headers only the widths of integers. The ABI is stable: structs do not change, functions are added.
 */
#ifndef BWTIME_H
#define BWTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef BWTIME_API /* how the library itself is compiled */
#define BWTIME_API
#endif

struct bwtime; /* opaque */

enum bwtime_flag {
	BWTIME_TELL_STEPS = 1, /* give the new time after a step at once, backwards too; bwtime_stamp.stepped tells */
	BWTIME_ORDERED = 2,    /* the counter is read after all loads that precede; see docs/time-service.md. Costs some ns on x86 */
};

/* What functions return; the numbers are those of Linux's errno, with a minus, on every system. */
enum bwtime_result {
	BWTIME_OK = 0,
	BWTIME_NO_SERVICE = -2,       /* ENOENT: no service has been here since the boot */
	BWTIME_NO_MEMORY = -12,       /* ENOMEM */
	BWTIME_DENIED = -13,          /* EACCES: the page may not be read, or others than its owner may write to it */
	BWTIME_BAD_ARGUMENT = -22,    /* EINVAL */
	BWTIME_NO_TAI = -34,          /* ERANGE: TAI - UTC is unknown */
	BWTIME_NO_SYNC = -61,         /* ENODATA: there is no time with a bound now */
	BWTIME_BAD_VERSION = -71,     /* EPROTO: service and library are of different versions */
	BWTIME_BAD_PAGE = -74,        /* EBADMSG: the page is damaged, cut off, or something else */
	BWTIME_BAD_COUNTER = -95,     /* ENOTSUP: this machine's counter cannot serve */
	BWTIME_STEPPED = -116,        /* ESTALE: the time was stepped since this handle's last reading */
};

enum bwtime_state {
	BWTIME_STATE_SYNCHRONISED = 2,
	BWTIME_STATE_HOLDOVER = 3, /* no server is heard; the bound grows */
	BWTIME_STATE_ENDED = 6,    /* the service has ended; the bound grows */
};

struct bwtime_stamp {
	int64_t utc_ns;          /* since 1970, without leap seconds */
	int64_t earliest_utc_ns; /* true UTC is not before this, */
	int64_t latest_utc_ns;   /* and not after this, as long as the counter's drift is within the service's limit of it */
	int64_t bound_ns;        /* |utc_ns - true UTC| is at most this: the farther of the two */
	int64_t u_ns;            /* U of utc_ns (k = 2), from the scatter of exchanges; at most bound_ns */
	uint64_t epoch;    /* steps since the boot */
	int32_t tai_utc_s; /* TAI - UTC; 0: unknown */
	uint32_t state;    /* enum bwtime_state */
	uint32_t stepped;  /* 1: the time was stepped since the handle's last reading (BWTIME_TELL_STEPS) */
	int32_t leap;      /* 1: the last minute of the day has 61 s, 2: 59 s, 0: neither, 3: unknown */
};

/* How well the time is known, and since when. */
struct bwtime_condition {
	int64_t heard_utc_ns;      /* the last exchange with a server: since then the time runs free */
	int64_t valid_until_utc_ns; /* then the bound is wider than the service allows: BWTIME_NO_SYNC */
	int64_t growth_ppb;        /* of the interval, at either end */
	uint64_t disruptions;      /* how often the time was withdrawn or stepped, counted since the boot */
	uint64_t publications;     /* how often the service has published, counted since the boot */
	uint32_t state;            /* enum bwtime_state */
	uint32_t reserved;
};

struct bwtime_timespec {
	int64_t tv_sec;
	int32_t tv_nsec;
	int32_t reserved;
};

/**
 * Open a handle. Succeeds while no service is there: readings then say so until it is.
 *
 * @param path   NULL: the environment's BWTIME_PAGE, or else the system's place
 * @param flags  of enum bwtime_flag
 * @return 0, BWTIME_BAD_ARGUMENT, BWTIME_NO_MEMORY
 */
BWTIME_API int bwtime_open(const char *path, unsigned int flags, struct bwtime **handle_out);
BWTIME_API void bwtime_close(struct bwtime *handle);

/**
 * The time now. What is written on failure is not specified.
 *
 * @return 0; BWTIME_NO_SYNC, BWTIME_STEPPED, BWTIME_NO_SERVICE, BWTIME_BAD_COUNTER, BWTIME_BAD_PAGE, BWTIME_BAD_VERSION,
 *         BWTIME_DENIED
 */
BWTIME_API int bwtime_now_ns(struct bwtime *handle, int64_t *utc_ns);
/** The same with its bound. */
BWTIME_API int bwtime_now(struct bwtime *handle, struct bwtime_stamp *stamp);
/** The same as TAI; BWTIME_NO_TAI where TAI - UTC is unknown. @param bound_ns  may be NULL */
BWTIME_API int bwtime_now_tai_ns(struct bwtime *handle, int64_t *tai_ns, int64_t *bound_ns);
/** The same in NTP's format: 2^-32 s since 1900 modulo 2^64 (RFC 5905). @param bound_ns  may be NULL */
BWTIME_API int bwtime_now_ntp(struct bwtime *handle, uint64_t *ntp, int64_t *bound_ns);
/** The same as clock_gettime has it. */
BWTIME_API int bwtime_gettime(struct bwtime *handle, struct bwtime_timespec *utc);

/** How well the time is known, by the service's last word. @return as bwtime_now */
BWTIME_API int bwtime_condition(struct bwtime *handle, struct bwtime_condition *condition);

/** Readings one right after the other, with one look at the service's page for all. */
BWTIME_API int bwtime_stamps(struct bwtime *handle, struct bwtime_stamp *stamps, size_t count);
/** The counter as bwtime_from_ticks wants it; 0: this machine has none. */
BWTIME_API uint64_t bwtime_ticks(void);
/**
 * Times of earlier readings of the counter (bwtime_ticks), in any order; they do not count for "never backwards". Before the
 * last publication the bound grows as it does after it.
 *
 * @return as bwtime_now; BWTIME_BAD_ARGUMENT: further off than the page can tell, or from before the time was last withdrawn or
 *         stepped (the counter may have stopped); stamps up to there are written
 */
BWTIME_API int bwtime_from_ticks(struct bwtime *handle, const uint64_t *ticks, size_t count, struct bwtime_stamp *stamps);

/**
 * The time at which the kernel has stamped a packet, an input or the like by the system's clock, a moment ago.
 *
 * The system's clock is held against this one now. What it may have been slewed by since the stamp, 1000 ppm at most, is a part of the
 * bound and of U. A step of it is seen if this function was called before on this handle; it then answers BWTIME_BAD_ARGUMENT once.
 *
 * @param realtime_ns  CLOCK_REALTIME of the stamp in ns, at most a second ago
 * @return as bwtime_now; BWTIME_BAD_ARGUMENT: it lies in the future or too far back, or the system's clock was stepped
 */
BWTIME_API int bwtime_past(struct bwtime *handle, int64_t realtime_ns, struct bwtime_stamp *stamp);
/**
 * The time between two readings of the counter (bwtime_ticks), at most an hour apart: no offset is in its error.
 *
 * @param duration_ns  from the first one to the second; negative: the other way round
 * @param bound_ns     |duration_ns - true| is at most this; may be NULL
 * @return as bwtime_now; BWTIME_BAD_ARGUMENT: further apart, or the time was withdrawn or stepped since the earlier one
 */
BWTIME_API int bwtime_difference(struct bwtime *handle, uint64_t from_ticks, uint64_t to_ticks, int64_t *duration_ns,
				 int64_t *bound_ns);

/** Take note of a step: go on with the new time, which may be less than this handle's last one. @return 0 */
BWTIME_API int bwtime_accept_step(struct bwtime *handle);
/** Size of the last step in ns; positive: the time went forward. 0: none. */
BWTIME_API int64_t bwtime_last_step_ns(const struct bwtime *handle);
/** How often the service had published, counted since the boot, when this handle last looked. */
BWTIME_API uint64_t bwtime_publications(const struct bwtime *handle);
/** Why the last reading of this handle gave no time, in words: a constant text; "" when it did. */
BWTIME_API const char *bwtime_why(const struct bwtime *handle);
/** Name of a result, as a constant text. */
BWTIME_API const char *bwtime_result_name(int result);
/** Version of this library's ABI: 1. */
BWTIME_API unsigned int bwtime_abi_version(void);

#ifdef __cplusplus
}
#endif

#endif
