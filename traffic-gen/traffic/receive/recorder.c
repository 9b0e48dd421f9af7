/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/frame.h"
#include "base/json.h"

#define PERIOD_NS INT64_C(20000000) /* 20 ms: a message ring of one lane holds more than 1,000,000 messages/s for that long */

enum { MISS_CAPACITY = 8192, MESSAGE_CAPACITY = 32768, PATH_BYTES = 4096 };

static void write_miss(FILE *out, const struct recorder_entry *e)
{
	struct json json;

	json_init(&json, out);
	json_object_open(&json, NULL);
	json_uint(&json, "stream", e->stream_id);
	json_uint(&json, "sequence", e->sequence);
	json_int(&json, "scheduled_tai_ns", e->scheduled_tai_ns);
	if (frame_lateness_valid(e->lateness_ns)) {
		json_int(&json, "lateness_ns", e->lateness_ns);
		json_int(&json, "received_minus_sent_ns", e->received_minus_scheduled_ns - e->lateness_ns);
	} else {
		json_null(&json, "lateness_ns");
		json_null(&json, "received_minus_sent_ns");
	}
	json_int(&json, "received_minus_scheduled_ns", e->received_minus_scheduled_ns);
	json_int(&json, "received_local_tai_ns", e->received_local_tai_ns);
	json_int(&json, "received_reference_tai_ns", e->received_reference_tai_ns);
	if (e->kernel_stamp_local_tai_ns)
		json_int(&json, "kernel_stamp_local_tai_ns", e->kernel_stamp_local_tai_ns);
	else
		json_null(&json, "kernel_stamp_local_tai_ns");
	json_object_close(&json);
	fputc('\n', out);
}

static void write_message_head(FILE *out)
{
	fputs("stream,sequence,scheduled_tai_ns,lateness_ns,received_minus_scheduled_ns,received_local_tai_ns,"
	      "received_reference_tai_ns,kernel_stamp_local_tai_ns\n", out);
}

static void write_message(FILE *out, const struct recorder_entry *e)
{
	fprintf(out, "%u,%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n",
		e->stream_id, e->sequence, e->scheduled_tai_ns, e->lateness_ns, e->received_minus_scheduled_ns,
		e->received_local_tai_ns, e->received_reference_tai_ns, e->kernel_stamp_local_tai_ns);
}

static void note_write_error(struct recorder *recorder, FILE *file)
{
	if (fflush(file) != 0 && recorder->write_error == 0)
		recorder->write_error = errno;
	else if (ferror(file) && recorder->write_error == 0)
		recorder->write_error = EIO;
}

static void drain(struct recorder *recorder)
{
	struct recorder_entry entry;

	for (int lane = 0; lane < RECORDER_LANES; lane++) {
		while (recorder->misses_file && ring_pop(&recorder->misses[lane], &entry))
			write_miss(recorder->misses_file, &entry);
		while (recorder->messages_file && ring_pop(&recorder->messages[lane], &entry))
			write_message(recorder->messages_file, &entry);
	}
	if (recorder->misses_file)
		note_write_error(recorder, recorder->misses_file);
	if (recorder->messages_file)
		note_write_error(recorder, recorder->messages_file);
}

static void run(void *argument)
{
	struct recorder *recorder = argument;

	while (!atomic_load(&recorder->stop)) {
		drain(recorder);
		port_sleep_ns(PERIOD_NS);
	}
	drain(recorder);
}

static int open_file(const char *directory, const char *name, FILE **file)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	*file = fopen(path, "w");
	return *file ? 0 : -errno;
}

static void destroy(struct recorder *recorder)
{
	for (int lane = 0; lane < RECORDER_LANES; lane++) {
		ring_destroy(&recorder->misses[lane]);
		ring_destroy(&recorder->messages[lane]);
	}
	if (recorder->misses_file)
		fclose(recorder->misses_file);
	if (recorder->messages_file)
		fclose(recorder->messages_file);
	recorder->misses_file = recorder->messages_file = NULL;
}

int recorder_start(struct recorder *recorder, const char *directory, bool log)
{
	int err = 0;

	memset(recorder, 0, sizeof(*recorder));
	if (!directory)
		return 0;
	err = port_directory_create(directory);
	if (!err)
		err = open_file(directory, "misses.ndjson", &recorder->misses_file);
	if (!err && log)
		err = open_file(directory, "messages.csv", &recorder->messages_file);
	for (int lane = 0; !err && lane < RECORDER_LANES; lane++) {
		err = ring_create(&recorder->misses[lane], MISS_CAPACITY, sizeof(struct recorder_entry));
		if (!err && log)
			err = ring_create(&recorder->messages[lane], MESSAGE_CAPACITY, sizeof(struct recorder_entry));
	}
	if (!err && log)
		write_message_head(recorder->messages_file);
	if (!err)
		err = port_thread_start("recorder", 0, PORT_CPU_ANY, run, recorder, &recorder->thread);
	if (err)
		destroy(recorder);
	return err;
}

void recorder_put(struct recorder *recorder, int lane, const struct recorder_entry *entry, bool late)
{
	if (late && recorder->misses_file)
		ring_push(&recorder->misses[lane], entry);
	if (recorder->messages_file)
		ring_push(&recorder->messages[lane], entry);
}

void recorder_stop(struct recorder *recorder)
{
	if (!recorder->thread)
		return;
	atomic_store(&recorder->stop, true);
	port_thread_join(recorder->thread);
	recorder->thread = NULL;
	destroy(recorder);
}

uint64_t recorder_misses_dropped(const struct recorder *recorder)
{
	return ring_dropped(&recorder->misses[0]) + ring_dropped(&recorder->misses[1]);
}

uint64_t recorder_messages_dropped(const struct recorder *recorder)
{
	return ring_dropped(&recorder->messages[0]) + ring_dropped(&recorder->messages[1]);
}
