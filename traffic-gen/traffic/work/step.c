/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/work/step.h"

#include <errno.h>
#include <stdio.h>

#include "base/time_units.h"
#include "port/port.h"
#include "port/port_program.h"
#include "traffic/bulk/bulk_data.h"

enum { BLOCK_BYTES = 65536, OF_ALL = -1 };

/* Name a file. @param slot  whose it is, or OF_ALL: which all read. */
static int name_file(char path[STEP_PATH_BYTES], const struct step *step, int64_t slot, int64_t number)
{
	int length = slot == OF_ALL ? snprintf(path, STEP_PATH_BYTES, "%s/bw-work-in-%lld", step->folder, (long long)number) :
				      snprintf(path, STEP_PATH_BYTES, "%s/bw-work-out-%lld-%lld", step->folder, (long long)slot,
					       (long long)number);

	return length < 0 || length >= STEP_PATH_BYTES ? -ENAMETOOLONG : 0;
}

static int write_blocks(FILE *file, uint64_t *state, int64_t size_bytes, bool sync)
{
	static uint8_t block[BLOCK_BYTES];

	while (size_bytes > 0) {
		size_t piece_bytes = size_bytes < BLOCK_BYTES ? (size_t)size_bytes : BLOCK_BYTES;

		bulk_fill(state, block, piece_bytes);
		if (fwrite(block, 1, piece_bytes, file) != piece_bytes)
			return -errno;
		size_bytes -= (int64_t)piece_bytes;
	}
	return sync ? port_file_sync(file) : 0;
}

static int write_file(const struct step *step, uint64_t *state, int64_t slot, int64_t number)
{
	char path[STEP_PATH_BYTES];
	FILE *file;
	int err = name_file(path, step, slot, number);

	if (err)
		return err;
	file = fopen(path, "wb");
	if (!file)
		return -errno;
	err = write_blocks(file, state, slot == OF_ALL ? step->read_bytes : step->write_bytes, step->sync && slot != OF_ALL);
	if (fclose(file) && !err)
		err = -errno;
	return err;
}

static int read_file(const struct step *step, int64_t number, struct bulk_sum *sum)
{
	static uint8_t block[BLOCK_BYTES];
	char path[STEP_PATH_BYTES];
	size_t length_bytes;
	FILE *file;
	int err = name_file(path, step, OF_ALL, number);

	if (err)
		return err;
	file = fopen(path, "rb");
	if (!file)
		return -errno;
	while ((length_bytes = fread(block, 1, sizeof(block), file)) > 0)
		bulk_sum_add(sum, block, length_bytes);
	if (ferror(file))
		err = -EIO;
	fclose(file);
	return err;
}

static int begin_random(uint64_t *state)
{
	int err = port_random(state);

	*state |= 1;
	return err;
}

int step_write_inputs(const struct step *step)
{
	uint64_t state;
	int err = begin_random(&state);

	for (int64_t i = 0; i < step->read_files && !err; i++)
		err = write_file(step, &state, OF_ALL, i);
	return err;
}

int step_run(const struct step *step, int64_t slot)
{
	static uint8_t block[BLOCK_BYTES];
	struct bulk_sum sum = { 0 };
	uint64_t state;
	int err = begin_random(&state);

	for (int64_t i = 0; i < step->read_files && !err; i++)
		err = read_file(step, i, &sum);
	while (!err && step->cpu_ms && port_thread_cpu_ns() < step->cpu_ms * NS_PER_MS) {
		bulk_fill(&state, block, sizeof(block));
		bulk_sum_add(&sum, block, sizeof(block));
	}
	for (int64_t i = 0; i < step->write_files && !err; i++)
		err = write_file(step, &state, slot, i);
	return err;
}

void step_remove_files(const struct step *step, int64_t slots)
{
	char path[STEP_PATH_BYTES];

	for (int64_t i = 0; i < step->read_files; i++)
		if (!name_file(path, step, OF_ALL, i))
			remove(path);
	for (int64_t slot = 0; slot < slots; slot++)
		for (int64_t i = 0; i < step->write_files; i++)
			if (!name_file(path, step, slot, i))
				remove(path);
	remove(step->folder); /* a folder with files is not; nor is any on Windows, whose C library removes none */
}
