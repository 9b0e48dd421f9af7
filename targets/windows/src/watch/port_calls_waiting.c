/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: readiness of sockets, ends of operations, and what else a program may sleep in. */
#include "port_watch.h"

/* Waits for anything else than sockets are locks for the most part: short ones are left out. */
static const uint64_t BLOCK_MIN_NS = 100000;

static void note_set(struct watch_event *event, const fd_set *set, uint32_t events)
{
	for (u_int i = 0; set && i < set->fd_count; i++)
		watch_ready(event, set->fd_array[i], events);
}

static int WSAAPI own_select(int ignored, fd_set *in, fd_set *out, fd_set *except, PTIMEVAL timeout)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_SELECT, INVALID_SOCKET);
	watch_value(&event, 0, timeout ? timeout->tv_sec * INT64_C(1000000000) + timeout->tv_usec * INT64_C(1000) : -1);
	result = select(ignored, in, out, except, timeout);
	if (result > 0) {
		DWORD error = GetLastError();

		note_set(&event, in, POLLRDNORM);
		note_set(&event, out, POLLWRNORM);
		note_set(&event, except, POLLPRI);
		SetLastError(error);
	}
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_WSAPoll(LPWSAPOLLFD polled, ULONG count, INT timeout_ms)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_WSA_POLL, INVALID_SOCKET);
	watch_value(&event, 0, timeout_ms < 0 ? -1 : timeout_ms * INT64_C(1000000));
	result = WSAPoll(polled, count, timeout_ms);
	for (ULONG i = 0; i < count && result > 0; i++) {
		if (polled[i].revents)
			watch_ready(&event, polled[i].fd, (uint16_t)polled[i].revents);
	}
	watch_end(&event, result);
	return result;
}

static BOOL WINAPI own_GetQueuedCompletionStatus(HANDLE port, LPDWORD size, PULONG_PTR key, LPOVERLAPPED *overlapped, DWORD timeout_ms)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_QUEUED_STATUS, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	done = GetQueuedCompletionStatus(port, size, key, overlapped, timeout_ms);
	watch_end(&event, done ? 1 : -1);
	operation_end(*overlapped, *size, done ? 0 : GetLastError());
	return done;
}

static BOOL WINAPI own_GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG capacity, PULONG count,
						   DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_QUEUED_STATUS_EX, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	done = GetQueuedCompletionStatusEx(port, entries, capacity, count, timeout_ms, alertable);
	watch_end(&event, done ? (int64_t)*count : -1);
	for (ULONG i = 0; done && i < *count; i++) {
		operation_end(entries[i].lpOverlapped, entries[i].dwNumberOfBytesTransferred, OPERATION_SAYS);
	}
	return done;
}

/* WSA_IO_INCOMPLETE: it goes on. */
static void note_result(OVERLAPPED *overlapped, BOOL done, DWORD size)
{
	DWORD error = GetLastError();

	if (done || error != WSA_IO_INCOMPLETE)
		operation_end(overlapped, size, done ? 0 : error);
}

static BOOL WSAAPI own_WSAGetOverlappedResult(SOCKET sock, LPWSAOVERLAPPED overlapped, LPDWORD size, BOOL wait, LPDWORD flags)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_WSA_OVERLAPPED_RESULT, sock);
	watch_timeout_ms(&event, wait ? INFINITE : 0);
	done = WSAGetOverlappedResult(sock, overlapped, size, wait, flags);
	watch_end(&event, done ? 0 : -1);
	note_result(overlapped, done, done ? *size : 0);
	return done;
}

static BOOL WINAPI own_GetOverlappedResult(HANDLE file, LPOVERLAPPED overlapped, LPDWORD size, BOOL wait)
{
	struct watch_event event;
	BOOL done;

	if (!socket_is_known(file))
		return GetOverlappedResult(file, overlapped, size, wait);
	watch_begin(&event, WATCH_OVERLAPPED_RESULT, (SOCKET)file);
	watch_timeout_ms(&event, wait ? INFINITE : 0);
	done = GetOverlappedResult(file, overlapped, size, wait);
	watch_end(&event, done ? 0 : -1);
	note_result(overlapped, done, done ? *size : 0);
	return done;
}

static DWORD WSAAPI own_WSAWaitForMultipleEvents(DWORD count, const WSAEVENT *events, BOOL all, DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;
	DWORD result;

	watch_begin(&event, WATCH_WSA_WAIT_EVENTS, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	result = WSAWaitForMultipleEvents(count, events, all, timeout_ms, alertable);
	watch_end(&event, result == WSA_WAIT_FAILED ? -1 : (int64_t)result);
	return result;
}

static int WSAAPI own_WSAEventSelect(SOCKET sock, WSAEVENT wanted, long events)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_WSA_EVENT_SELECT, sock);
	watch_value(&event, 0, events);
	result = WSAEventSelect(sock, wanted, events);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_WSAEnumNetworkEvents(SOCKET sock, WSAEVENT reset, LPWSANETWORKEVENTS events)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_WSA_ENUM_EVENTS, sock);
	result = WSAEnumNetworkEvents(sock, reset, events);
	if (!result)
		watch_value(&event, 0, events->lNetworkEvents);
	watch_end(&event, result);
	return result;
}

static VOID WINAPI own_Sleep(DWORD timeout_ms)
{
	struct watch_event event;

	watch_begin(&event, WATCH_SLEEP, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	Sleep(timeout_ms);
	watch_end(&event, 0);
}

static DWORD WINAPI own_SleepEx(DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;
	DWORD result;

	watch_begin(&event, WATCH_SLEEP_EX, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	result = SleepEx(timeout_ms, alertable);
	watch_end(&event, result);
	return result;
}

/* End of a wait for anything, written down if it was long. */
static DWORD blocked(struct watch_event *event, DWORD timeout_ms, DWORD result)
{
	DWORD error = GetLastError();
	LARGE_INTEGER now, tick_hz;

	QueryPerformanceCounter(&now);
	QueryPerformanceFrequency(&tick_hz);
	if ((uint64_t)now.QuadPart - event->begin_ticks >= BLOCK_MIN_NS * (uint64_t)tick_hz.QuadPart / 1000000000) {
		watch_timeout_ms(event, timeout_ms);
		watch_end_with(event, result == WAIT_FAILED ? -1 : (int64_t)result, error);
	}
	SetLastError(error);
	return result;
}

static DWORD WINAPI own_WaitForSingleObject(HANDLE object, DWORD timeout_ms)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WAIT_ONE, INVALID_SOCKET);
	return blocked(&event, timeout_ms, WaitForSingleObject(object, timeout_ms));
}

static DWORD WINAPI own_WaitForSingleObjectEx(HANDLE object, DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WAIT_ONE_EX, INVALID_SOCKET);
	return blocked(&event, timeout_ms, WaitForSingleObjectEx(object, timeout_ms, alertable));
}

static DWORD WINAPI own_WaitForMultipleObjects(DWORD count, const HANDLE *objects, BOOL all, DWORD timeout_ms)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WAIT_SEVERAL, INVALID_SOCKET);
	return blocked(&event, timeout_ms, WaitForMultipleObjects(count, objects, all, timeout_ms));
}

static DWORD WINAPI own_WaitForMultipleObjectsEx(DWORD count, const HANDLE *objects, BOOL all, DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WAIT_SEVERAL_EX, INVALID_SOCKET);
	return blocked(&event, timeout_ms, WaitForMultipleObjectsEx(count, objects, all, timeout_ms, alertable));
}

#define HOOK_SYSTEM(name) HOOK("kernelbase.dll", name), HOOK("kernel32.dll", name)

static const struct hook hooks[] = {
	HOOK("ws2_32.dll", select),
	HOOK("ws2_32.dll", WSAPoll),
	HOOK("ws2_32.dll", WSAGetOverlappedResult),
	HOOK("ws2_32.dll", WSAWaitForMultipleEvents),
	HOOK("ws2_32.dll", WSAEventSelect),
	HOOK("ws2_32.dll", WSAEnumNetworkEvents),
	HOOK_SYSTEM(GetQueuedCompletionStatus),
	HOOK_SYSTEM(GetQueuedCompletionStatusEx),
	HOOK_SYSTEM(GetOverlappedResult),
	HOOK_SYSTEM(Sleep),
	HOOK_SYSTEM(SleepEx),
	HOOK_SYSTEM(WaitForSingleObject),
	HOOK_SYSTEM(WaitForSingleObjectEx),
	HOOK_SYSTEM(WaitForMultipleObjects),
	HOOK_SYSTEM(WaitForMultipleObjectsEx),
};

const struct hook_table waiting_hooks = { hooks, sizeof(hooks) / sizeof(hooks[0]) };
