/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Log-linear histogram of signed nanoseconds in fixed memory.
 *
 * Magnitudes below 2048 ns have buckets of 1 ns; above that each octave has 1024 buckets, so that a bucket is never wider
 * than 1/1024 (< 0.1 %) of the magnitude of any value in it. Negative values mirror positive ones. All memory is
 * allocated (and touched) by histogram_create(); recording allocates nothing, locks nothing and takes bounded time.
 * One writer; readers of another thread need a lock of their own.
 */
#ifndef BW_HISTOGRAM_H
#define BW_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The range that suits latencies: -1.07 s to +68.7 s, 192 KiB a histogram. */
#define HISTOGRAM_LOWEST_NS (-((INT64_C(1) << 30) - 1))
#define HISTOGRAM_HIGHEST_NS ((INT64_C(1) << 36) - 1)

struct histogram;

/** One non-empty bucket: `count` values v with low_ns <= v < low_ns + width_ns. */
struct histogram_bucket {
	int64_t low_ns;
	int64_t width_ns;
	uint32_t count;
};

/** Where an iteration stands; begin with {0}. */
struct histogram_cursor {
	size_t next;
};

/**
 * Make an empty histogram for values in [lowest_ns, highest_ns].
 *
 * The range is widened to whole octaves (magnitudes up to 2^k - 1); lowest_ns <= 0 <= highest_ns, magnitudes below 2^62.
 * Memory: 4 bytes a bucket, 1024 buckets an octave (see histogram_size_bytes()).
 * Return NULL with errno EINVAL (range) or ENOMEM. The caller owns the result.
 */
struct histogram *histogram_create(int64_t lowest_ns, int64_t highest_ns);

void histogram_destroy(struct histogram *histogram);

/** Forget all values, keep the memory. */
void histogram_reset(struct histogram *histogram);

/**
 * Record one value. Return false when its bucket cannot hold it (out of range, or a bucket of 2^32 - 1 values): it is
 * then counted in histogram_overflow(), and still enters count, minimum, maximum, mean and standard deviation.
 */
bool histogram_record(struct histogram *histogram, int64_t value_ns);

/**
 * Record many values, like histogram_record() one after the other, but without a division a value as long as they lie
 * within 67 ms of each other; up to 512 at once are fastest.
 */
void histogram_record_all(struct histogram *histogram, const int64_t *values_ns, int count);

/** Add all values of `from` to `into`. Return 0, or -EINVAL when their ranges differ (nothing is changed then). */
int histogram_merge(struct histogram *into, const struct histogram *from);

/** Number of all values recorded, overflow included. */
uint64_t histogram_count(const struct histogram *histogram);

/** Number of the values that no bucket holds. */
uint64_t histogram_overflow(const struct histogram *histogram);

/** Exact extremes of all values; 0 while the histogram is empty. */
int64_t histogram_min_ns(const struct histogram *histogram);
int64_t histogram_max_ns(const struct histogram *histogram);

/** Mean of all values, from an exact 128-bit sum; 0 while empty. */
double histogram_mean_ns(const struct histogram *histogram);

/** Sample standard deviation (n - 1) of all values, by Welford's recurrence; 0 for fewer than two values. */
double histogram_stddev_ns(const struct histogram *histogram);

/**
 * Percentile by nearest rank: the value of rank max(1, ceil(ppm * n / 10^6)) in ascending order.
 *
 * `ppm` is the percentile in parts per million: 500000 is the median, 999000 p99.9; at most 1000000. The upper end of
 * the bucket is returned, clipped to the exact minimum and maximum: never below the true value, and above it by less than
 * 0.1 %. Ranks that fall into the overflow give the maximum (above the range) or the lower end of the range (below it).
 * Return 0, -ENODATA while empty, -EINVAL for a ppm over 1000000.
 */
int histogram_percentile(const struct histogram *histogram, uint32_t ppm, int64_t *value_ns);

/** Visit the non-empty buckets in ascending order. Return false after the last one. */
bool histogram_next(const struct histogram *histogram, struct histogram_cursor *cursor, struct histogram_bucket *bucket);

/** Memory that one histogram occupies, in bytes. */
size_t histogram_size_bytes(const struct histogram *histogram);

#endif
