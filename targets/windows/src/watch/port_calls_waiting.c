/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: readiness of sockets, ends of operations, and what else a program may sleep in. */
#include "port_watch.h"

#include <stddef.h>
#include <string.h>

#include "port_tune.h"

/* Waits for anything else than sockets are locks for the most part: short ones are left out. */
static const uint64_t BLOCK_MIN_NS = 100000;

static void note_set(struct watch_event *event, const fd_set *set, uint32_t events)
{
	for (u_int i = 0; set && i < set->fd_count; i++)
		watch_ready(event, set->fd_array[i], events);
}

enum { POLLED_SOCKETS_MAX = 1024 }; /* of a set; a larger one is not asked for again and again */

/* The sockets of a set, which select() changes. */
struct kept_set {
	u_int count;
	SOCKET sockets[POLLED_SOCKETS_MAX];
};

static bool keep_set(struct kept_set *kept, const fd_set *set)
{
	kept->count = set ? set->fd_count : 0;
	if (kept->count > POLLED_SOCKETS_MAX)
		return false;
	if (set)
		memcpy(kept->sockets, set->fd_array, kept->count * sizeof(SOCKET));
	return true;
}

static void put_set_back(const struct kept_set *kept, fd_set *set)
{
	if (!set)
		return;
	set->fd_count = kept->count;
	memcpy(set->fd_array, kept->sockets, kept->count * sizeof(SOCKET));
}

static int polled_select(int ignored, fd_set *in, fd_set *out, fd_set *except, PTIMEVAL timeout)
{
	const TIMEVAL at_once = { 0 };
	const int64_t second_us = 1000000;
	struct kept_set kept_in, kept_out, kept_except;
	struct poll poll;
	TIMEVAL rest = { 0 };
	int64_t rest_us;
	int result;

	if (!keep_set(&kept_in, in) || !keep_set(&kept_out, out) || !keep_set(&kept_except, except) ||
	    !poll_begin(&poll, !timeout || timeout->tv_sec || timeout->tv_usec))
		return select(ignored, in, out, except, timeout);
	do {
		TIMEVAL none = at_once;

		put_set_back(&kept_in, in);
		put_set_back(&kept_out, out);
		put_set_back(&kept_except, except);
		result = select(ignored, in, out, except, &none);
	} while (!result && poll_goes_on(&poll));
	if (result)
		return result;
	put_set_back(&kept_in, in);
	put_set_back(&kept_out, out);
	put_set_back(&kept_except, except);
	if (!timeout)
		return select(ignored, in, out, except, NULL);
	rest_us = poll_rest_us(&poll, timeout->tv_sec * second_us + timeout->tv_usec);
	rest.tv_sec = (long)(rest_us / second_us);
	rest.tv_usec = (long)(rest_us % second_us);
	return select(ignored, in, out, except, &rest);
}

static int WSAAPI own_select(int ignored, fd_set *in, fd_set *out, fd_set *except, PTIMEVAL timeout)
{
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_SELECT, INVALID_SOCKET);
	watch_value(&event, 0, timeout ? timeout->tv_sec * INT64_C(1000000000) + timeout->tv_usec * INT64_C(1000) : -1);
	result = polled_select(ignored, in, out, except, timeout);
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

static int polled_poll(LPWSAPOLLFD polled, ULONG count, INT timeout_ms)
{
	struct poll poll;
	int result = 0;

	if (!poll_begin(&poll, timeout_ms != 0))
		return WSAPoll(polled, count, timeout_ms);
	do
		result = WSAPoll(polled, count, 0);
	while (!result && poll_goes_on(&poll));
	return result ? result : WSAPoll(polled, count, timeout_ms < 0 ? timeout_ms : (INT)poll_rest_ms(&poll, (DWORD)timeout_ms));
}

static int WSAAPI own_WSAPoll(LPWSAPOLLFD polled, ULONG count, INT timeout_ms)
{
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_POLL, INVALID_SOCKET);
	watch_value(&event, 0, timeout_ms < 0 ? -1 : timeout_ms * INT64_C(1000000));
	result = polled_poll(polled, count, timeout_ms);
	for (ULONG i = 0; i < count && result > 0; i++) {
		if (polled[i].revents)
			watch_ready(&event, polled[i].fd, (uint16_t)polled[i].revents);
	}
	watch_end(&event, result);
	return result;
}

static BOOL polled_status(HANDLE port, LPDWORD size, PULONG_PTR key, LPOVERLAPPED *overlapped, DWORD timeout_ms)
{
	struct poll poll;
	BOOL done;

	if (!poll_begin(&poll, timeout_ms != 0))
		return GetQueuedCompletionStatus(port, size, key, overlapped, timeout_ms);
	do
		done = GetQueuedCompletionStatus(port, size, key, overlapped, 0);
	while (!done && !*overlapped && GetLastError() == WAIT_TIMEOUT && poll_goes_on(&poll));
	if (done || *overlapped || GetLastError() != WAIT_TIMEOUT)
		return done;
	return GetQueuedCompletionStatus(port, size, key, overlapped, poll_rest_ms(&poll, timeout_ms));
}

static BOOL polled_entries(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG capacity, PULONG count, DWORD timeout_ms, BOOL alertable)
{
	struct poll poll;
	BOOL done;

	if (!poll_begin(&poll, timeout_ms != 0))
		return GetQueuedCompletionStatusEx(port, entries, capacity, count, timeout_ms, alertable);
	do
		done = GetQueuedCompletionStatusEx(port, entries, capacity, count, 0, alertable);
	while (!done && GetLastError() == WAIT_TIMEOUT && poll_goes_on(&poll));
	if (done || GetLastError() != WAIT_TIMEOUT)
		return done;
	return GetQueuedCompletionStatusEx(port, entries, capacity, count, poll_rest_ms(&poll, timeout_ms), alertable);
}

static BOOL WINAPI own_GetQueuedCompletionStatus(HANDLE port, LPDWORD size, PULONG_PTR key, LPOVERLAPPED *overlapped, DWORD timeout_ms)
{
	struct watch_event event;
	BOOL done;

	tune_thread();
	watch_begin(&event, WATCH_QUEUED_STATUS, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	done = polled_status(port, size, key, overlapped, timeout_ms);
	watch_end(&event, done ? 1 : -1);
	operation_end(*overlapped, *size, done ? 0 : GetLastError());
	return done;
}

static BOOL WINAPI own_GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG capacity, PULONG count,
						   DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;
	BOOL done;

	tune_thread();
	watch_begin(&event, WATCH_QUEUED_STATUS_EX, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	done = polled_entries(port, entries, capacity, count, timeout_ms, alertable);
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

static DWORD polled_events(DWORD count, const WSAEVENT *events, BOOL all, DWORD timeout_ms, BOOL alertable)
{
	struct poll poll;
	DWORD result;

	if (!poll_begin(&poll, timeout_ms != 0))
		return WSAWaitForMultipleEvents(count, events, all, timeout_ms, alertable);
	do
		result = WSAWaitForMultipleEvents(count, events, all, 0, alertable);
	while (result == WSA_WAIT_TIMEOUT && poll_goes_on(&poll));
	return result != WSA_WAIT_TIMEOUT ? result :
					    WSAWaitForMultipleEvents(count, events, all, poll_rest_ms(&poll, timeout_ms), alertable);
}

static DWORD WSAAPI own_WSAWaitForMultipleEvents(DWORD count, const WSAEVENT *events, BOOL all, DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;
	DWORD result;

	watch_begin(&event, WATCH_WSA_WAIT_EVENTS, INVALID_SOCKET);
	watch_timeout_ms(&event, timeout_ms);
	result = polled_events(count, events, all, timeout_ms, alertable);
	watch_end(&event, result == WSA_WAIT_FAILED ? -1 : (int64_t)result);
	return result;
}

static int WSAAPI own_WSAAsyncSelect(SOCKET sock, HWND window, u_int message, long events)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_WSA_ASYNC_SELECT, sock);
	poll_no_more_readable();
	watch_value(&event, 0, events);
	result = WSAAsyncSelect(sock, window, message, events);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_WSAEventSelect(SOCKET sock, WSAEVENT wanted, long events)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_WSA_EVENT_SELECT, sock);
	poll_no_more_readable();
	watch_value(&event, 0, events);
	result = WSAEventSelect(sock, wanted, events);
	if (!result && events)
		poll_note_event(wanted);
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

/* A wait for anything: for events that tell of sockets it asks again and again before it sleeps. */
static DWORD polled_objects(DWORD count, const HANDLE *objects, BOOL all, DWORD timeout_ms, BOOL alertable)
{
	struct poll poll;
	DWORD result;

	if (!poll_is_for_sockets(count, objects) || !poll_begin(&poll, timeout_ms != 0))
		return WaitForMultipleObjectsEx(count, objects, all, timeout_ms, alertable);
	do
		result = WaitForMultipleObjectsEx(count, objects, all, 0, alertable);
	while (result == WAIT_TIMEOUT && poll_goes_on(&poll));
	return result != WAIT_TIMEOUT ? result :
					WaitForMultipleObjectsEx(count, objects, all, poll_rest_ms(&poll, timeout_ms), alertable);
}

static DWORD WINAPI own_WaitForSingleObject(HANDLE object, DWORD timeout_ms)
{
	struct watch_event event;

	DWORD result;

	watch_begin(&event, WATCH_WAIT_ONE, INVALID_SOCKET);
	result = poll_is_for_sockets(1, &object) ? polled_objects(1, &object, FALSE, timeout_ms, FALSE) :
						   WaitForSingleObject(object, timeout_ms);
	return blocked(&event, timeout_ms, result);
}

static DWORD WINAPI own_WaitForSingleObjectEx(HANDLE object, DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;

	DWORD result;

	watch_begin(&event, WATCH_WAIT_ONE_EX, INVALID_SOCKET);
	result = poll_is_for_sockets(1, &object) ? polled_objects(1, &object, FALSE, timeout_ms, alertable) :
						   WaitForSingleObjectEx(object, timeout_ms, alertable);
	return blocked(&event, timeout_ms, result);
}

static DWORD WINAPI own_WaitForMultipleObjects(DWORD count, const HANDLE *objects, BOOL all, DWORD timeout_ms)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WAIT_SEVERAL, INVALID_SOCKET);
	return blocked(&event, timeout_ms, polled_objects(count, objects, all, timeout_ms, FALSE));
}

static DWORD WINAPI own_WaitForMultipleObjectsEx(DWORD count, const HANDLE *objects, BOOL all, DWORD timeout_ms, BOOL alertable)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WAIT_SEVERAL_EX, INVALID_SOCKET);
	return blocked(&event, timeout_ms, polled_objects(count, objects, all, timeout_ms, alertable));
}

#define HOOK_SYSTEM(name) HOOK("kernelbase.dll", name), HOOK("kernel32.dll", name)

static const struct hook hooks[] = {
	HOOK("ws2_32.dll", select),
	HOOK("ws2_32.dll", WSAPoll),
	HOOK("ws2_32.dll", WSAGetOverlappedResult),
	HOOK("ws2_32.dll", WSAWaitForMultipleEvents),
	HOOK("ws2_32.dll", WSAAsyncSelect),
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
