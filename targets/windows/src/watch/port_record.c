/* SPDX-License-Identifier: Apache-2.0 */
#include "port_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"

enum { TEXT_BYTES = 256 * 1024, MACHINE_BYTES = 40, STATE_BYTES = 60 };

struct record {
	HANDLE file;
	uint64_t tick_hz, size_bytes, call_count, text_calls, dropped_count;
	DWORD error;
	size_t used;
	char machine[MACHINE_BYTES], text[TEXT_BYTES];
};

static bool write_at(const struct record *record, uint64_t offset, const void *data, size_t size, DWORD *written)
{
	OVERLAPPED where = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };

	*written = 0;
	if (WriteFile(record->file, data, (DWORD)size, written, &where) && *written == size)
		return true;
	if (*written)
		SetLastError(ERROR_DISK_FULL);
	return false;
}

/* The first line, with what it has to say now. */
static bool write_head(const struct record *record, const char *state, uint64_t lost_count)
{
	const struct watch_end end = { record->call_count, lost_count, state, record->machine };
	char head[WATCH_HEAD_BYTES];
	DWORD written;

	watch_head(&end, head);
	return write_at(record, 0, head, sizeof(head), &written);
}

static void name_machine(char machine[MACHINE_BYTES])
{
	FARPROC found = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version");
	const char *(CDECL *version)(void);

	memcpy(&version, &found, sizeof(version));
	snprintf(machine, MACHINE_BYTES, found ? "Wine %s" : "Windows", found ? version() : "");
}

struct record *record_open(const wchar_t *path)
{
	struct record *record = calloc(1, sizeof(*record));
	LARGE_INTEGER tick_hz;
	DWORD error;

	if (!record)
		return NULL;
	QueryPerformanceFrequency(&tick_hz);
	record->tick_hz = (uint64_t)tick_hz.QuadPart;
	name_machine(record->machine);
	record->file = CreateFileW(path, GENERIC_WRITE, FILE_SHARE_READ, NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
	if (record->file != INVALID_HANDLE_VALUE && write_head(record, "open", 0)) {
		record->size_bytes = WATCH_HEAD_BYTES;
		return record;
	}
	error = GetLastError();
	if (record->file != INVALID_HANDLE_VALUE)
		CloseHandle(record->file);
	free(record);
	SetLastError(error);
	return NULL;
}

/* The file ends behind its last whole line. */
static void cut(struct record *record, DWORD written)
{
	LARGE_INTEGER end = { .QuadPart = 0 };
	size_t whole = 0;

	for (size_t i = 0; i < written; i++) {
		if (record->text[i] == '\n') {
			whole = i + 1;
			record->call_count++;
			record->text_calls--;
		}
	}
	record->dropped_count += record->text_calls;
	record->size_bytes += whole;
	end.QuadPart = (LONGLONG)record->size_bytes;
	SetFilePointerEx(record->file, end, NULL, FILE_BEGIN);
	SetEndOfFile(record->file);
}

static void flush(struct record *record)
{
	DWORD written;

	if (!record->used)
		return;
	if (write_at(record, record->size_bytes, record->text, record->used, &written)) {
		record->size_bytes += written;
		record->call_count += record->text_calls;
	} else {
		record->error = GetLastError() ? GetLastError() : ERROR_WRITE_FAULT;
		cut(record, written);
	}
	record->used = 0;
	record->text_calls = 0;
}

uint64_t record_write(struct record *record, struct watch_ring *ring)
{
	struct watch_event event;
	uint64_t count = 0;

	while (ring_take(ring, &event)) {
		count++;
		if (record->error) {
			record->dropped_count++;
			continue;
		}
		record->used += watch_line(&event, record->tick_hz, record->text + record->used);
		record->text_calls++;
		if (record->used > TEXT_BYTES - WATCH_LINE_BYTES)
			flush(record);
	}
	flush(record);
	return count;
}

DWORD record_error(const struct record *record)
{
	return record->error;
}

uint64_t record_close(struct record *record, struct watch_ring *ring)
{
	char state[STATE_BYTES] = "complete";
	uint64_t count;

	do {
		record_write(record, ring);
	} while (ring_skip_hole(ring));
	if (record->error)
		snprintf(state, sizeof(state), "broken off: error %lu", record->error);
	write_head(record, state, ring->lost_count + record->dropped_count);
	CloseHandle(record->file);
	count = record->call_count;
	free(record);
	return count;
}
