/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbwevents: points in a program that record what it does, and when.
 *
 *	BW_EVENT_POINT(sent, "send", "message", "a message is handed to the transport; tag: its number");
 *	...
 *	BW_EVENT(sent, number);
 *
 * A point that is off costs two loads and a branch. `bw-events record` starts the program and turns points on, by name or group,
 * before it starts and while it runs; `bw-events list PROGRAM` finds them in the file of the program.
 *
 * A point that is on reads the processor's counter and writes 32 bytes into a ring in shared memory, a ring for each processor.
 * Recording neither locks nor allocates nor waits: it may be done in signal handlers, in threads of any priority, after fork() and
 * in real-time loops. Where a ring has no room the event is lost, and the next one there says how many were lost before it.
 * The rings outlive the program: an event whose call has returned is there, however the program ended.
 *
 * Points are C99 and C++. One declaration a line, at file scope. A library that is linked into a program brings points of its own.
 */
#ifndef BW_EVENTS_H
#define BW_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef BW_EVENTS_API /* how the library itself is compiled */
#define BW_EVENTS_API
#endif

enum bw_point_kind {
	BW_POINT_EVENT = 1,
	BW_POINT_DATA = 2,      /* an event with bytes, and the name of what unpacks them */
	BW_POINT_INTERVAL = 3,  /* one event at its end, with its length in ticks */
	BW_POINT_COUNTER = 4,   /* a sum, which is recorded when the program says so */
	BW_POINT_HISTOGRAM = 5, /* counts by value, likewise */
};

enum {
	BW_EVENT_DATA_MAX_BYTES = 4096,
	BW_HISTOGRAM_BUCKETS_MAX = 500,
};

/* What `bw-events list` reads in the file of a program: 256 bytes without a
 * pointer. Texts end by a zero; group and name have no space and none of * ? . + , */
struct bw_point_description {
	char group[24];
	char name[40];
	char decoder[24]; /* of BW_POINT_DATA: how the bytes are unpacked: a format of Python's struct, or the name of a function */
	char about[144];
	uint32_t kind;    /* enum bw_point_kind */
	uint32_t buckets; /* of BW_POINT_HISTOGRAM: of one width each, 1 to BW_HISTOGRAM_BUCKETS_MAX; beside them one below, one above */
	int64_t low, high; /* of BW_POINT_HISTOGRAM: low <= value < high is counted in a bucket */
};

struct bw_events; /* opaque: what a program records into */

struct bw_point {
	const volatile uint8_t *on; /* a bit for each stream that wants it */
	const struct bw_point_description *description;
	struct bw_events *events;
	uint32_t number;
} __attribute__((aligned(32))); /* as the linker lays them beside each other, whatever a pointer's size */

/* Of points while nothing records. */
BW_EVENTS_API extern const uint8_t bw_events_off;

#define BW_POINT_(variable, kind_, group_, name_, decoder_, about_, low_, high_, buckets_)                                  \
	typedef char variable##_texts_fit[sizeof(group_) <= 24 && sizeof(name_) <= 40 && sizeof(decoder_) <= 24 &&          \
					  sizeof(about_) <= 144 ? 1 : -1];                                                  \
	static const struct bw_point_description variable##_description __attribute__((section("bwevents"), used, aligned(32))) = { \
		group_, name_, decoder_, about_, kind_, buckets_, low_, high_ };                                                \
	static struct bw_point variable __attribute__((section("bwpoints"), used, aligned(32))) = {                              \
		&bw_events_off, &variable##_description, 0, 0 }

#define BW_EVENT_POINT(variable, group, name, about) BW_POINT_(variable, BW_POINT_EVENT, group, name, "", about, 0, 0, 0)
#define BW_DATA_POINT(variable, group, name, decoder, about) BW_POINT_(variable, BW_POINT_DATA, group, name, decoder, about, 0, 0, 0)
#define BW_INTERVAL_POINT(variable, group, name, about) BW_POINT_(variable, BW_POINT_INTERVAL, group, name, "", about, 0, 0, 0)
#define BW_COUNTER_POINT(variable, group, name, about) BW_POINT_(variable, BW_POINT_COUNTER, group, name, "", about, 0, 0, 0)
#define BW_HISTOGRAM_POINT(variable, group, name, low, high, buckets, about) \
	BW_POINT_(variable, BW_POINT_HISTOGRAM, group, name, "", about, low, high, buckets)

#ifndef BW_EVENTS_NONE
/** True while a stream wants a point: for what has to be worked out before an event can be recorded. */
#define BW_POINT_IS_ON(point) __builtin_expect(*(point).on != 0, 0)

/** Record an event. @param tag  any number: of a message, a connection, a block */
#define BW_EVENT(point, tag)                                      \
	do {                                                      \
		if (BW_POINT_IS_ON(point))                        \
			bw_event_write(&(point), (tag), NULL, 0); \
	} while (0)

/** Record an event with bytes. @param size_bytes  0 to BW_EVENT_DATA_MAX_BYTES; what is more is cut off */
#define BW_EVENT_DATA(point, tag, data, size_bytes)                           \
	do {                                                                  \
		if (BW_POINT_IS_ON(point))                                    \
			bw_event_write(&(point), (tag), (data), (size_bytes)); \
	} while (0)

/** Begin an interval. @return what BW_INTERVAL_END needs; 0 while it is off */
#define BW_INTERVAL_BEGIN(point) (BW_POINT_IS_ON(point) ? bw_events_ticks(&(point)) : 0)
/** End an interval; one that was begun while its point was off is not recorded. */
#define BW_INTERVAL_END(point, began_ticks, tag)                            \
	do {                                                                \
		if (BW_POINT_IS_ON(point))                                  \
			bw_interval_write(&(point), (began_ticks), (tag)); \
	} while (0)

/** Add to a counter or count a value in a histogram: nothing is recorded by it. */
#define BW_ADD(point, value)                                    \
	do {                                                    \
		if (BW_POINT_IS_ON(point))                      \
			bw_value_add(&(point), (value));        \
	} while (0)
/** Record what a counter or a histogram has come to. */
#define BW_LOG(point)                                \
	do {                                         \
		if (BW_POINT_IS_ON(point))           \
			bw_value_log(&(point));      \
	} while (0)
/** Begin a counter or a histogram anew. */
#define BW_RESET(point)                              \
	do {                                         \
		if (BW_POINT_IS_ON(point))           \
			bw_value_reset(&(point));    \
	} while (0)

#else
/* Compiled without points: nothing of them is in the program. */
#undef BW_POINT_
#define BW_POINT_(variable, kind_, group_, name_, decoder_, about_, low_, high_, buckets_) struct bw_no_point_##variable
#define BW_POINT_IS_ON(point) 0
#define BW_EVENT(point, tag) ((void)(tag))
#define BW_EVENT_DATA(point, tag, data, size_bytes) ((void)(tag), (void)(data), (void)(size_bytes))
#define BW_INTERVAL_BEGIN(point) UINT64_C(0)
#define BW_INTERVAL_END(point, began_ticks, tag) ((void)(began_ticks), (void)(tag))
#define BW_ADD(point, value) ((void)(value))
#define BW_LOG(point) ((void)0)
#define BW_RESET(point) ((void)0)
#endif

/* What the macros call while a point is on. */
BW_EVENTS_API void bw_event_write(const struct bw_point *point, int64_t tag, const void *data, size_t size_bytes);
BW_EVENTS_API uint64_t bw_events_ticks(const struct bw_point *point);
BW_EVENTS_API void bw_interval_write(const struct bw_point *point, uint64_t began_ticks, int64_t tag);
BW_EVENTS_API void bw_value_add(const struct bw_point *point, int64_t value);
BW_EVENTS_API void bw_value_log(const struct bw_point *point);
BW_EVENTS_API void bw_value_reset(const struct bw_point *point);

/*
 * Points that a program makes as it runs: of other languages (Python: benchwright's bwevents), from a file of names.
 */

/**
 * Open what `bw-events record` has prepared, if it runs this program.
 *
 * @param program       name in the recording; what is no letter, digit, ".", "-" or "_" becomes "_"
 * @param descriptions  of all points; they must stay
 * @param points        receives count points
 * @return 0; -ENOENT (-2): nothing records, the points stay off; -EINVAL (-22): a description is wrong, or a group has the same name
 *         twice; or -errno
 */
BW_EVENTS_API int bw_events_open(const char *program, const struct bw_point_description *descriptions, size_t count,
				 struct bw_point *points, struct bw_events **events_out);
/** Turn the points off and close; no other thread may use them any more. What was recorded stays. NULL does no harm. */
BW_EVENTS_API void bw_events_close(struct bw_events *events, struct bw_point *points, size_t count);

#ifdef __cplusplus
}
#endif

#endif
