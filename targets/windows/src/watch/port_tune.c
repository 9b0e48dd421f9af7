/* SPDX-License-Identifier: Apache-2.0 */
#include "port_tune.h"

#include <avrt.h>
#include <mstcpip.h>
#include <winternl.h>

#include "../port_wide.h"
#include "port_watch.h"

enum { SOCKET_PLACES = 65536, HANDLE_STEP = 4, TICKS_OF_100NS = 10 };

typedef HANDLE(WINAPI *set_class_function)(LPCWSTR name, LPDWORD index);
NTSTATUS NTAPI NtSetTimerResolution(ULONG wanted_100ns, BOOLEAN set, PULONG now_100ns);

/* By handle: 1 is to be told how often to acknowledge once it has a connection; 1 is an event that tells of a socket. */
static uint8_t unconnected[SOCKET_PLACES], events[SOCKET_PLACES];
static DWORD tuned_threads = TLS_OUT_OF_INDEXES;
static LONG may_not_block;

static struct tuning *wanted(enum tuning_name name)
{
	struct tuning *tuning = &watch_memory()->tunings[name];

	return tuning->wanted ? tuning : NULL;
}

/* Write down what came of a setting: what it holds now, or the error for which it does not. */
static void write_down(enum tuning_name name, SOCKET sock, bool held, int64_t value, DWORD error)
{
	struct tuning *tuning = wanted(name);
	struct watch_event event;

	watch_begin(&event, WATCH_TUNE, sock);
	watch_value(&event, 0, tuning->value);
	watch_text(&event, tuning_name(name));
	__atomic_add_fetch(held ? &tuning->held_count : &tuning->refused_count, 1, __ATOMIC_RELAXED);
	if (!held)
		tuning->error = error;
	watch_end_with(&event, error ? -1 : value, error);
}

static void set_option(enum tuning_name name, SOCKET sock, int level, int option)
{
	const struct tuning *tuning = wanted(name);
	int value = 0, length = sizeof(value);
	bool is_limit = name == TUNE_SEND_BUFFER || name == TUNE_RECEIVE_BUFFER;
	DWORD error = 0;

	if (!tuning)
		return;
	if (is_limit && getsockopt(sock, level, option, (char *)&value, &length) == 0 && value >= tuning->value) {
		write_down(name, sock, true, value, 0); /* a larger one stays */
		return;
	}
	value = (int)tuning->value;
	if (setsockopt(sock, level, option, (const char *)&value, sizeof(value)) != 0)
		error = GetLastError();
	value = 0; /* an option may be of one byte */
	if (!error && getsockopt(sock, level, option, (char *)&value, &length) != 0)
		error = GetLastError();
	write_down(name, sock, !error && (is_limit ? value >= tuning->value : value == (int)tuning->value), value, error);
}

static uint8_t *place_of(uint8_t places[SOCKET_PLACES], uintptr_t handle)
{
	return &places[handle / HANDLE_STEP % SOCKET_PLACES];
}

/* How often segments are acknowledged: on some systems only of a socket that has a connection. It cannot be read back. */
static void set_ack_frequency(SOCKET sock, bool may_wait)
{
	const struct tuning *tuning = wanted(TUNE_ACK_FREQUENCY);
	DWORD value, count = 0, error = 0;

	if (!tuning)
		return;
	value = (DWORD)tuning->value;
	if (WSAIoctl(sock, SIO_TCP_SET_ACK_FREQUENCY, &value, sizeof(value), NULL, 0, &count, NULL, NULL) != 0)
		error = GetLastError();
	if (may_wait && (error == WSAENOTCONN || error == WSAEINVAL))
		__atomic_store_n(place_of(unconnected, sock), 1, __ATOMIC_RELAXED);
	else
		write_down(TUNE_ACK_FREQUENCY, sock, !error, value, error);
}

void tune_socket(SOCKET sock)
{
	DWORD last = GetLastError();
	WSAPROTOCOL_INFOW info;
	int length = sizeof(info);

	if (getsockopt(sock, SOL_SOCKET, SO_PROTOCOL_INFOW, (char *)&info, &length) == 0 &&
	    (info.iAddressFamily == AF_INET || info.iAddressFamily == AF_INET6)) {
		set_option(TUNE_SEND_BUFFER, sock, SOL_SOCKET, SO_SNDBUF);
		set_option(TUNE_RECEIVE_BUFFER, sock, SOL_SOCKET, SO_RCVBUF);
		if (info.iSocketType == SOCK_STREAM) {
			set_option(TUNE_NO_DELAY, sock, IPPROTO_TCP, TCP_NODELAY);
			set_ack_frequency(sock, true);
		}
	}
	SetLastError(last);
}

void tune_connected(SOCKET sock)
{
	DWORD last = GetLastError();

	if (__atomic_exchange_n(place_of(unconnected, sock), 0, __ATOMIC_RELAXED))
		set_ack_frequency(sock, false);
	SetLastError(last);
}

static DWORD set_class(const struct tuning *tuning)
{
	HMODULE library = LoadLibraryW(L"avrt.dll");
	FARPROC found = library ? GetProcAddress(library, "AvSetMmThreadCharacteristicsW") : NULL;
	wchar_t name[TUNING_TEXT_BYTES];
	set_class_function set;
	DWORD index = 0;

	if (!found || !wide_from(tuning->text, name, TUNING_TEXT_BYTES))
		return ERROR_PROC_NOT_FOUND;
	memcpy(&set, &found, sizeof(set));
	return set(name, &index) ? 0 : GetLastError();
}

void tune_thread(void)
{
	const struct tuning *tuning = wanted(TUNE_MULTIMEDIA_CLASS);
	DWORD last, error;

	if (!tuning || tuned_threads == TLS_OUT_OF_INDEXES)
		return;
	last = GetLastError();
	if (!TlsGetValue(tuned_threads)) {
		TlsSetValue(tuned_threads, &tuned_threads);
		error = set_class(tuning);
		write_down(TUNE_MULTIMEDIA_CLASS, INVALID_SOCKET, !error, !error, error);
	}
	SetLastError(last);
}

void tune_process(void)
{
	const struct tuning *timer = wanted(TUNE_TIMER);
	ULONG now_100ns = 0;

	if (wanted(TUNE_MULTIMEDIA_CLASS))
		tuned_threads = TlsAlloc();
	if (timer) {
		ULONG wanted_100ns = (ULONG)(timer->value * TICKS_OF_100NS);
		NTSTATUS status = NtSetTimerResolution(wanted_100ns, TRUE, &now_100ns);
		DWORD error = status ? RtlNtStatusToDosError(status) : 0;

		write_down(TUNE_TIMER, INVALID_SOCKET, !error && now_100ns <= wanted_100ns, now_100ns / TICKS_OF_100NS, error);
	}
	if (wanted(TUNE_POLL))
		write_down(TUNE_POLL, INVALID_SOCKET, true, wanted(TUNE_POLL)->value, 0);
}

bool tune_holds(SOCKET sock, int level, int option, const char *value, int length)
{
	static LONG said;
	bool is_no_delay = level == IPPROTO_TCP && option == TCP_NODELAY && wanted(TUNE_NO_DELAY);
	bool is_send = level == SOL_SOCKET && option == SO_SNDBUF && wanted(TUNE_SEND_BUFFER);
	bool is_receive = level == SOL_SOCKET && option == SO_RCVBUF && wanted(TUNE_RECEIVE_BUFFER);
	int now = 0, now_length = sizeof(now), asked = 0;

	if ((!is_no_delay && !is_send && !is_receive) || !value || length < 1)
		return false;
	memcpy(&asked, value, (size_t)length < sizeof(asked) ? (size_t)length : sizeof(asked));
	if (getsockopt(sock, level, option, (char *)&now, &now_length) != 0 || asked >= now)
		return false; /* an error is the program's own to see, and more than we have set it may have */
	watch_note_once(&said, "sets an option lower than bw-accel has: what bw-accel has set stays");
	return true;
}

static uint64_t now_ticks(uint64_t *tick_hz)
{
	LARGE_INTEGER now, frequency;

	QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&now);
	*tick_hz = (uint64_t)frequency.QuadPart;
	return (uint64_t)now.QuadPart;
}

bool poll_begin(struct poll *poll, bool waits)
{
	const struct tuning *tuning = waits ? wanted(TUNE_POLL) : NULL;

	if (!tuning)
		return false;
	poll->begin_ticks = now_ticks(&poll->tick_hz);
	poll->until_ticks = poll->begin_ticks + (uint64_t)tuning->value * poll->tick_hz / 1000000;
	return true;
}

bool poll_goes_on(const struct poll *poll)
{
	uint64_t tick_hz;

	YieldProcessor();
	return now_ticks(&tick_hz) < poll->until_ticks;
}

int64_t poll_rest_us(const struct poll *poll, int64_t timeout_us)
{
	uint64_t tick_hz;
	int64_t passed_us = (int64_t)((now_ticks(&tick_hz) - poll->begin_ticks) * 1000000 / poll->tick_hz);

	return timeout_us > passed_us ? timeout_us - passed_us : 0;
}

DWORD poll_rest_ms(const struct poll *poll, DWORD timeout_ms)
{
	const int64_t up_us = 999; /* no wait may end before its time */

	return timeout_ms == INFINITE ? INFINITE : (DWORD)((poll_rest_us(poll, timeout_ms * INT64_C(1000)) + up_us) / 1000);
}

void poll_note_event(HANDLE event)
{
	__atomic_store_n(place_of(events, (uintptr_t)event), 1, __ATOMIC_RELAXED);
}

void poll_forget_event(HANDLE event)
{
	__atomic_store_n(place_of(events, (uintptr_t)event), 0, __ATOMIC_RELAXED);
}

bool poll_is_for_sockets(DWORD count, const HANDLE *objects)
{
	bool found = false;

	for (DWORD i = 0; i < count && !found; i++)
		found = __atomic_load_n(place_of(events, (uintptr_t)objects[i]), __ATOMIC_RELAXED);
	return found;
}

void poll_readable(SOCKET sock)
{
	DWORD last = GetLastError();
	WSAPOLLFD polled = { .fd = sock, .events = POLLRDNORM };
	struct poll poll;

	if (poll_begin(&poll, !__atomic_load_n(&may_not_block, __ATOMIC_RELAXED))) {
		while (WSAPoll(&polled, 1, 0) == 0 && poll_goes_on(&poll))
			;
	}
	SetLastError(last);
}

void poll_no_more_readable(void)
{
	__atomic_store_n(&may_not_block, 1, __ATOMIC_RELAXED);
}
