/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and operations of this process, by handle and by OVERLAPPED. */
#include "port_watch.h"

#include <winternl.h>

enum { SOCKET_PLACES = 65536, OPERATION_PLACES = 8192, OPERATION_TRIES = 16 };

/* Handle (32 bits, as Windows promises of all handles) and number, by the handle's place; a socket takes that of an older one. */
static uint64_t sockets[SOCKET_PLACES];
static uint32_t last_socket;

static struct operation operations[OPERATION_PLACES];
static SRWLOCK operations_lock = SRWLOCK_INIT;
static uint64_t last_operation;

static uint64_t *place_of(uint64_t handle)
{
	return &sockets[handle / 4 % SOCKET_PLACES]; /* handles are multiples of four */
}

uint32_t socket_number(SOCKET sock)
{
	uint64_t *place = place_of(sock), seen = __atomic_load_n(place, __ATOMIC_ACQUIRE);

	while (!(uint32_t)seen || seen >> 32 != (uint32_t)sock) {
		uint32_t number = __atomic_add_fetch(&last_socket, 1, __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(place, &seen, (uint64_t)(uint32_t)sock << 32 | number, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return number;
	}
	return (uint32_t)seen;
}

bool socket_is_known(HANDLE handle)
{
	uint64_t seen = __atomic_load_n(place_of((uint64_t)(uintptr_t)handle), __ATOMIC_ACQUIRE);

	return (uint32_t)seen && seen >> 32 == (uint32_t)(uintptr_t)handle;
}

void socket_forget(SOCKET sock)
{
	uint64_t *place = place_of(sock), seen = __atomic_load_n(place, __ATOMIC_ACQUIRE);

	if (seen >> 32 == (uint32_t)sock)
		__atomic_compare_exchange_n(place, &seen, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct operation *operation_place(OVERLAPPED *overlapped, int attempt)
{
	uint64_t hash = (uint64_t)(uintptr_t)overlapped * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	return &operations[(hash + (uint64_t)attempt) % OPERATION_PLACES];
}

/* Take an operation out; one that its routine ends only where `with_routine`. @return false: it is not known */
static bool take(OVERLAPPED *overlapped, bool with_routine, struct operation *taken)
{
	bool found = false;

	AcquireSRWLockExclusive(&operations_lock);
	for (int i = 0; i < OPERATION_TRIES && !found; i++) {
		struct operation *each = operation_place(overlapped, i);

		found = each->overlapped == overlapped && (with_routine || !each->routine);
		if (found) {
			*taken = *each;
			each->overlapped = NULL;
		}
	}
	ReleaseSRWLockExclusive(&operations_lock);
	return found;
}

/* Put an operation in; whose end nobody asked for makes room, never one with a routine. @return false: there is no room */
static bool put(const struct operation *own)
{
	struct operation *chosen = NULL;

	AcquireSRWLockExclusive(&operations_lock);
	for (int i = 0; i < OPERATION_TRIES; i++) {
		struct operation *each = operation_place(own->overlapped, i);

		if (each->overlapped == own->overlapped) {
			chosen = each;
			break;
		}
		if (!each->overlapped ? !chosen || chosen->overlapped : !chosen && !each->routine)
			chosen = each;
	}
	if (chosen)
		*chosen = *own;
	ReleaseSRWLockExclusive(&operations_lock);
	return chosen != NULL;
}

static void write_down_end(const struct operation *operation, int64_t size_bytes, DWORD error)
{
	struct watch_event event;

	watch_begin(&event, WATCH_COMPLETION, INVALID_SOCKET);
	event.socket = operation->socket;
	event.operation = operation->number;
	event.ended = operation->function;
	watch_end_with(&event, error ? -1 : size_bytes, error);
}

static void CALLBACK own_routine(DWORD error, DWORD size_bytes, LPWSAOVERLAPPED overlapped, DWORD flags)
{
	struct operation operation;

	if (!take(overlapped, true, &operation))
		return;
	write_down_end(&operation, size_bytes, error);
	operation.routine(error, size_bytes, overlapped, flags);
}

LPWSAOVERLAPPED_COMPLETION_ROUTINE operation_begin(struct watch_event *event, OVERLAPPED *overlapped,
						   LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	struct operation own = { overlapped, routine, 0, event->socket, event->function };

	if (!overlapped)
		return routine;
	own.number = __atomic_add_fetch(&last_operation, 1, __ATOMIC_RELAXED);
	event->operation = own.number;
	return put(&own) && routine ? own_routine : routine;
}

void operation_begun(struct watch_event *event, OVERLAPPED *overlapped, int64_t result)
{
	DWORD error = GetLastError();
	struct operation refused;

	if (overlapped && result < 0 && error != WSA_IO_PENDING)
		take(overlapped, true, &refused);
	watch_end_with(event, result, error);
	SetLastError(error);
}

void operation_end(OVERLAPPED *overlapped, int64_t size_bytes, DWORD error)
{
	DWORD last = GetLastError();
	struct operation operation;

	if (overlapped && take(overlapped, false, &operation)) {
		if (error == OPERATION_SAYS)
			error = RtlNtStatusToDosError((NTSTATUS)overlapped->Internal);
		write_down_end(&operation, size_bytes, error);
	}
	SetLastError(last);
}
