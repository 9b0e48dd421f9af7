/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/latency/latency_cost.h"

#include <stdio.h>
#include <stdlib.h>

#include "answer/answer.h"
#include "base/histogram.h"
#include "base/json.h"
#include "config/options.h"
#include "clock/source.h"

#define TOOL "bw-clock latency"

enum { BLOCKS_MAX = 1001, BLOCK_READS = 10240, BATCH = 256 };

/* Bare: nothing is kept but what the processor must do. Return the ticks that it took. */
static uint64_t bare_block(const struct source *source)
{
	uint64_t begin = port_counter_read();

	for (int i = 0; i < BLOCK_READS; i++) {
		port_counter_before();
		port_kernel_clock_touch(source->kernel_clock);
		port_counter_after();
	}
	return port_counter_read() - begin;
}

static uint64_t recorded_block(struct source *source, struct histogram *histogram)
{
	int64_t ticks[BATCH];
	uint64_t begin = port_counter_read();

	for (int i = 0; i < BLOCK_READS / BATCH; i++) {
		for (int k = 0; k < BATCH; k++) {
			uint64_t before = port_counter_before(), after;
			int64_t now_tai_ns;

			source_read(source, &now_tai_ns);
			after = port_counter_after();
			ticks[k] = (int64_t)(after - before);
		}
		histogram_record_all(histogram, ticks, BATCH);
	}
	return port_counter_read() - begin;
}

static int compare_ticks(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static double median_ns(uint64_t *ticks, size_t count, uint64_t hz)
{
	const size_t middle = count / 2;

	qsort(ticks, count, sizeof(ticks[0]), compare_ticks);
	return (double)ticks[middle] * 1e9 / (double)hz / BLOCK_READS;
}

int latency_cost(struct source *source, uint64_t hz, int64_t reads)
{
	static uint64_t bare[BLOCKS_MAX], recorded[BLOCKS_MAX];
	size_t blocks = (size_t)((reads + BLOCK_READS - 1) / BLOCK_READS);
	struct histogram *histogram = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	double bare_ns, recorded_ns;
	struct json json;
	int err;

	if (source->phc || source->card.page || source->plugin.object || source->tsc.hz || source->timeservice.handle) {
		fputs(TOOL ": --cost: only for a clock of the kernel\n", stderr);
		histogram_destroy(histogram);
		return EXIT_BAD_INPUT;
	}
	if (!histogram) {
		fputs(TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	if (blocks > BLOCKS_MAX)
		blocks = BLOCKS_MAX;
	for (size_t i = 0; i < blocks; i++) {
		bare[i] = bare_block(source);
		recorded[i] = recorded_block(source, histogram);
	}
	bare_ns = median_ns(bare, blocks, hz);
	recorded_ns = median_ns(recorded, blocks, hz);
	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_bool(&json, "complete", true);
	json_string(&json, "name", source->text);
	json_uint(&json, "n", histogram_count(histogram));
	json_double(&json, "bare_ns", bare_ns);
	json_double(&json, "recorded_ns", recorded_ns);
	json_double(&json, "ratio", recorded_ns / bare_ns);
	json_uint(&json, "tsc_hz", hz);
	err = answer_end(&json);
	histogram_destroy(histogram);
	return err ? EXIT_CAPABILITY : EXIT_DONE;
}
