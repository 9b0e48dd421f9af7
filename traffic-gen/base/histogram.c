/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SUBBUCKET_BITS 10 /* 1024 buckets an octave: no bucket is wider than 1/1024 of a value in it */
#define SUBBUCKETS (UINT64_C(1) << SUBBUCKET_BITS)
#define MAGNITUDE_BITS_MAX 62
#define PAGE_BYTES 4096
#define BATCH_MAX 512                       /* so many squares of BATCH_SPAN_NS, summed, fit into 62 bits */
#define BATCH_SPAN_NS (UINT64_C(1) << 26)

/* Exact sum of int64 values, two's complement. */
struct wide_sum {
	uint64_t low;
	int64_t high;
};

struct histogram {
	uint64_t count;
	uint64_t below;    /* overflow under the lowest bucket */
	uint64_t above;    /* overflow over the highest bucket */
	uint64_t crowded;  /* overflow of a full bucket */
	int64_t min_ns;
	int64_t max_ns;
	struct wide_sum sum;
	double welford_mean_ns;
	double welford_m2;
	size_t negative_buckets; /* of magnitudes 0, 1, …; that of 0 stays empty */
	size_t positive_buckets;
	uint32_t counts[]; /* the negative ones first, by magnitude; then the others */
};

/* Number of buckets that magnitudes 0..limit need, in whole octaves. */
static size_t buckets_for(uint64_t limit)
{
	unsigned int bits = SUBBUCKET_BITS + 1;

	if (limit == 0)
		return 0;
	while (limit >> bits)
		bits++;
	return (size_t)(bits - SUBBUCKET_BITS + 1) << SUBBUCKET_BITS;
}

static size_t bucket_of(uint64_t magnitude)
{
	unsigned int shift = 0;

	if (magnitude >= 2 * SUBBUCKETS)
		shift = (unsigned int)(63 - __builtin_clzll(magnitude)) - SUBBUCKET_BITS;
	return ((size_t)shift << SUBBUCKET_BITS) + (size_t)(magnitude >> shift);
}

/* Smallest magnitude of a bucket, and its width. */
static uint64_t bucket_start(size_t bucket, uint64_t *width)
{
	unsigned int shift = bucket < 2 * SUBBUCKETS ? 0 : (unsigned int)(bucket >> SUBBUCKET_BITS) - 1;

	*width = UINT64_C(1) << shift;
	return ((uint64_t)bucket - ((uint64_t)shift << SUBBUCKET_BITS)) << shift;
}

static uint64_t magnitude_of(int64_t value_ns)
{
	return value_ns < 0 ? UINT64_C(0) - (uint64_t)value_ns : (uint64_t)value_ns;
}

struct histogram *histogram_create(int64_t lowest_ns, int64_t highest_ns)
{
	const int64_t limit = INT64_C(1) << MAGNITUDE_BITS_MAX;
	size_t negative, positive, size;
	struct histogram *histogram;

	if (lowest_ns > 0 || highest_ns < 0 || lowest_ns <= -limit || highest_ns >= limit) {
		errno = EINVAL;
		return NULL;
	}
	negative = buckets_for(magnitude_of(lowest_ns));
	positive = buckets_for((uint64_t)highest_ns);
	if (positive == 0)
		positive = 2 * SUBBUCKETS; /* 0 itself needs a bucket */
	size = sizeof(*histogram) + (negative + positive) * sizeof(histogram->counts[0]);
	histogram = calloc(1, size);
	if (!histogram) {
		errno = ENOMEM;
		return NULL;
	}
	/* Fresh zero pages cost a fault at their first use: take it now. */
	for (size_t i = 0; i < size; i += PAGE_BYTES)
		((volatile char *)histogram)[i] = 0;
	histogram->negative_buckets = negative;
	histogram->positive_buckets = positive;
	return histogram;
}

void histogram_destroy(struct histogram *histogram)
{
	free(histogram);
}

void histogram_reset(struct histogram *histogram)
{
	size_t negative = histogram->negative_buckets, positive = histogram->positive_buckets;

	memset(histogram, 0, histogram_size_bytes(histogram));
	histogram->negative_buckets = negative;
	histogram->positive_buckets = positive;
}

static void sum_add(struct wide_sum *sum, const struct wide_sum *term)
{
	uint64_t low = sum->low + term->low;

	sum->high += term->high + (low < sum->low);
	sum->low = low;
}

/* Statistics of all values, whether a bucket holds them or not. */
static void count_exactly(struct histogram *histogram, int64_t value_ns)
{
	struct wide_sum term = { .low = (uint64_t)value_ns, .high = value_ns < 0 ? -1 : 0 };
	double delta;

	if (histogram->count == 0 || value_ns < histogram->min_ns)
		histogram->min_ns = value_ns;
	if (histogram->count == 0 || value_ns > histogram->max_ns)
		histogram->max_ns = value_ns;
	histogram->count++;
	sum_add(&histogram->sum, &term);
	delta = (double)value_ns - histogram->welford_mean_ns;
	histogram->welford_mean_ns += delta / (double)histogram->count;
	histogram->welford_m2 += delta * ((double)value_ns - histogram->welford_mean_ns);
}

static inline bool count_in_bucket(struct histogram *histogram, int64_t value_ns)
{
	size_t bucket = bucket_of(magnitude_of(value_ns));

	if (value_ns < 0) {
		if (bucket >= histogram->negative_buckets) {
			histogram->below++;
			return false;
		}
	} else {
		if (bucket >= histogram->positive_buckets) {
			histogram->above++;
			return false;
		}
		bucket += histogram->negative_buckets;
	}
	if (histogram->counts[bucket] == UINT32_MAX) {
		histogram->crowded++;
		return false;
	}
	histogram->counts[bucket]++;
	return true;
}

bool histogram_record(struct histogram *histogram, int64_t value_ns)
{
	count_exactly(histogram, value_ns);
	return count_in_bucket(histogram, value_ns);
}

/* Chan, Golub, LeVeque: updating formulae for the variance of two samples put together. */
static void merge_statistics(struct histogram *into, const struct histogram *from)
{
	double n_into = (double)into->count, n_from = (double)from->count;
	double delta = from->welford_mean_ns - into->welford_mean_ns;

	if (into->count == 0 || from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (into->count == 0 || from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	into->welford_mean_ns += delta * n_from / (n_into + n_from);
	into->welford_m2 += from->welford_m2 + delta * delta * n_into * n_from / (n_into + n_from);
	into->count += from->count;
	sum_add(&into->sum, &from->sum);
	into->below += from->below;
	into->above += from->above;
	into->crowded += from->crowded;
}

/* value * factor, exactly. */
static struct wide_sum wide_product(int64_t value, uint32_t factor)
{
	int64_t upper = (value >> 32) * (int64_t)factor; /* arithmetic, as every compiler here does it */
	struct wide_sum product = { .low = (uint64_t)(uint32_t)value * factor };
	struct wide_sum term = { .low = (uint64_t)upper << 32, .high = upper >> 32 };

	sum_add(&product, &term);
	return product;
}

/*
 * Statistics of a batch from whole numbers, relative to its first value: exact, and without a division a value. Return
 * false when its values lie too far apart for that.
 */
static bool count_batch(struct histogram *histogram, const int64_t *values_ns, int count)
{
	struct histogram batch = { .count = (uint64_t)count, .min_ns = values_ns[0], .max_ns = values_ns[0] };
	int64_t sum = 0, squares = 0; /* they may overflow, without harm, where the span is too large */
	struct wide_sum term;

	if (count > BATCH_MAX)
		return false;
	for (int i = 0; i < count; i++) {
		int64_t distance = (int64_t)((uint64_t)values_ns[i] - (uint64_t)values_ns[0]);

		batch.min_ns = values_ns[i] < batch.min_ns ? values_ns[i] : batch.min_ns;
		batch.max_ns = values_ns[i] > batch.max_ns ? values_ns[i] : batch.max_ns;
		sum = (int64_t)((uint64_t)sum + (uint64_t)distance);
		squares = (int64_t)((uint64_t)squares + (uint64_t)distance * (uint64_t)distance);
	}
	if ((uint64_t)batch.max_ns - (uint64_t)batch.min_ns > BATCH_SPAN_NS)
		return false;
	batch.sum = wide_product(values_ns[0], (uint32_t)count);
	term = (struct wide_sum){ .low = (uint64_t)sum, .high = sum < 0 ? -1 : 0 };
	sum_add(&batch.sum, &term);
	batch.welford_mean_ns = (double)values_ns[0] + (double)sum / count;
	batch.welford_m2 = (double)squares - (double)sum * (double)sum / count;
	merge_statistics(histogram, &batch);
	return true;
}

void histogram_record_all(struct histogram *histogram, const int64_t *values_ns, int count)
{
	if (count <= 0)
		return;
	if (!count_batch(histogram, values_ns, count)) {
		for (int i = 0; i < count; i++)
			count_exactly(histogram, values_ns[i]);
	}
	for (int i = 0; i < count; i++)
		count_in_bucket(histogram, values_ns[i]);
}

int histogram_merge(struct histogram *into, const struct histogram *from)
{
	if (into->negative_buckets != from->negative_buckets || into->positive_buckets != from->positive_buckets)
		return -EINVAL;
	if (from->count == 0)
		return 0;
	merge_statistics(into, from);
	for (size_t i = 0; i < into->negative_buckets + into->positive_buckets; i++) {
		uint32_t room = UINT32_MAX - into->counts[i];
		uint32_t moved = from->counts[i] < room ? from->counts[i] : room;

		into->crowded += from->counts[i] - moved;
		into->counts[i] += moved;
	}
	return 0;
}

uint64_t histogram_count(const struct histogram *histogram)
{
	return histogram->count;
}

uint64_t histogram_overflow(const struct histogram *histogram)
{
	return histogram->below + histogram->above + histogram->crowded;
}

int64_t histogram_min_ns(const struct histogram *histogram)
{
	return histogram->min_ns;
}

int64_t histogram_max_ns(const struct histogram *histogram)
{
	return histogram->max_ns;
}

double histogram_mean_ns(const struct histogram *histogram)
{
	struct wide_sum sum = histogram->sum;
	bool negative = sum.high < 0;
	double magnitude;

	if (histogram->count == 0)
		return 0;
	if (negative) {
		sum.low = ~sum.low + 1;
		sum.high = ~sum.high + (sum.low == 0);
	}
	magnitude = (ldexp((double)sum.high, 64) + (double)sum.low) / (double)histogram->count;
	return negative ? -magnitude : magnitude;
}

double histogram_stddev_ns(const struct histogram *histogram)
{
	if (histogram->count < 2)
		return 0;
	return sqrt(histogram->welford_m2 / (double)(histogram->count - 1));
}

/* Rank of a percentile, ceil(ppm * count / 10^6), without overflow. */
static uint64_t rank_of(uint64_t count, uint32_t ppm)
{
	uint64_t whole = count / 1000000 * ppm, rest = count % 1000000 * ppm;
	uint64_t rank = whole + (rest + 999999) / 1000000;

	return rank ? rank : 1;
}

int histogram_percentile(const struct histogram *histogram, uint32_t ppm, int64_t *value_ns)
{
	struct histogram_cursor cursor = { 0 };
	struct histogram_bucket bucket;
	uint64_t rank, seen = histogram->below;
	int64_t value;

	if (ppm > 1000000)
		return -EINVAL;
	if (histogram->count == 0)
		return -ENODATA;
	rank = rank_of(histogram->count, ppm);
	value = histogram->max_ns;
	if (rank <= seen) {
		uint64_t width;
		uint64_t start = histogram->negative_buckets ?
					 bucket_start(histogram->negative_buckets - 1, &width) + width : 1;

		value = -(int64_t)start;
	} else {
		while (histogram_next(histogram, &cursor, &bucket)) {
			seen += bucket.count;
			if (rank <= seen) {
				value = bucket.low_ns + bucket.width_ns - 1;
				break;
			}
		}
	}
	if (value > histogram->max_ns)
		value = histogram->max_ns;
	if (value < histogram->min_ns)
		value = histogram->min_ns;
	*value_ns = value;
	return 0;
}

bool histogram_next(const struct histogram *histogram, struct histogram_cursor *cursor, struct histogram_bucket *bucket)
{
	const size_t negative = histogram->negative_buckets, total = negative + histogram->positive_buckets;
	size_t place = cursor->next;

	for (; place < total; place++) {
		size_t index = place < negative ? negative - 1 - place : place;
		uint64_t start, width;

		if (histogram->counts[index] == 0)
			continue;
		start = bucket_start(place < negative ? index : index - negative, &width);
		bucket->low_ns = place < negative ? -(int64_t)(start + width - 1) : (int64_t)start;
		bucket->width_ns = (int64_t)width;
		bucket->count = histogram->counts[index];
		cursor->next = place + 1;
		return true;
	}
	cursor->next = place;
	return false;
}

size_t histogram_size_bytes(const struct histogram *histogram)
{
	return sizeof(*histogram) +
	       (histogram->negative_buckets + histogram->positive_buckets) * sizeof(histogram->counts[0]);
}
