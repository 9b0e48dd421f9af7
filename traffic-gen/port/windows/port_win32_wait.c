/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Windows: named events in the place of signals, WSAEventSelect for sockets of the caller's. An event is named by
 * the number of the process and belongs to its user: he and administrators may set it.
 */
#include "port/port_wait.h"

#include <winsock2.h>
#include <windows.h>
#include <sddl.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "port/port.h"

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002
#endif

#define NAME "Global\\benchwright-time-%s-%lu"
#define STOP_NAME "Global\\benchwright-stop-%lu" /* as bw-job sets it: port_win32.c */
/* Full access of the system, administrators and the owner; nobody else may set an event. */
#define ACCESS "D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;OW)"

enum { ENDED, HELD, LISTENED, TIMER, HANDLES, SOCKET_EVENT = HANDLES, ALL_HANDLES };

/* What waiter.signals points to. */
struct signals {
	HANDLE handles[ALL_HANDLES]; /* of events, of the timer, of the socket */
};

static HANDLE console_end; /* a console handler gets no argument */

static BOOL WINAPI on_console_event(DWORD event)
{
	(void)event;
	SetEvent(console_end);
	return TRUE;
}

static void name_of(char name[64], enum wait_event event, unsigned long pid)
{
	if (event == WAIT_END)
		snprintf(name, 64, STOP_NAME, pid);
	else
		snprintf(name, 64, NAME, event == WAIT_HOLD ? "hold" : "listen", pid);
}

static HANDLE open_event(enum wait_event event)
{
	SECURITY_ATTRIBUTES attributes = { .nLength = sizeof(attributes) };
	char name[64];
	HANDLE handle;

	name_of(name, event, GetCurrentProcessId());
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorA(ACCESS, SDDL_REVISION_1, &attributes.lpSecurityDescriptor, NULL))
		return NULL;
	handle = CreateEventA(&attributes, event == WAIT_END, FALSE, name);
	LocalFree(attributes.lpSecurityDescriptor);
	return handle;
}

static HANDLE open_timer(void)
{
	HANDLE timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);

	return timer ? timer : CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
}

int waiter_open(struct waiter *waiter, bool holds)
{
	struct signals *signals = calloc(1, sizeof(*signals));

	*waiter = (struct waiter){ .signals = -1, .sock = -1 };
	if (!signals)
		return -ENOMEM;
	waiter->signals = (intptr_t)signals;
	signals->handles[ENDED] = open_event(WAIT_END);
	signals->handles[HELD] = holds ? open_event(WAIT_HOLD) : CreateEventA(NULL, FALSE, FALSE, NULL);
	signals->handles[LISTENED] = holds ? open_event(WAIT_LISTEN) : CreateEventA(NULL, FALSE, FALSE, NULL);
	signals->handles[SOCKET_EVENT] = WSACreateEvent();
	signals->handles[TIMER] = open_timer();
	for (int i = 0; i < ALL_HANDLES; i++) {
		if (!signals->handles[i]) {
			waiter_close(waiter);
			return -EACCES;
		}
	}
	console_end = signals->handles[ENDED];
	SetConsoleCtrlHandler(on_console_event, TRUE);
	return 0;
}

int waiter_open_socket(struct waiter *waiter)
{
	(void)waiter;
	return -ENOTSUP;
}

void waiter_close(struct waiter *waiter)
{
	struct signals *signals = (struct signals *)waiter->signals;

	if (waiter->signals != -1) {
		SetConsoleCtrlHandler(on_console_event, FALSE);
		for (int i = 0; i < ALL_HANDLES; i++)
			if (signals->handles[i])
				CloseHandle(signals->handles[i]);
		free(signals);
	}
	*waiter = (struct waiter){ .signals = -1, .sock = -1 };
}

int waiter_send(const struct waiter *waiter, const struct address *peer, const void *data, size_t size_bytes)
{
	(void)waiter;
	(void)peer;
	(void)data;
	(void)size_bytes;
	return -ENOTSUP;
}

int waiter_wait(struct waiter *waiter, int64_t deadline_monotonic_ns, struct datagram *datagram)
{
	(void)datagram;
	return waiter_wait_socket(waiter, deadline_monotonic_ns, -1);
}

int waiter_wait_socket(struct waiter *waiter, int64_t deadline_monotonic_ns, intptr_t sock)
{
	static const int meanings[ALL_HANDLES] = { WAIT_END, WAIT_HOLD, WAIT_LISTEN, WAIT_TIME, WAIT_DATAGRAM };
	struct signals *signals = (struct signals *)waiter->signals;
	int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	LARGE_INTEGER due = { .QuadPart = left_ns > 0 ? -(left_ns + 99) / 100 : -1 }; /* negative: relative */
	DWORD found;

	if (sock != -1) {
		WSAResetEvent(signals->handles[SOCKET_EVENT]);
		/* The event is set at once if there is something to read already. */
		if (WSAEventSelect((SOCKET)sock, signals->handles[SOCKET_EVENT], FD_READ | FD_CLOSE))
			return -EIO;
	}
	if (!SetWaitableTimer(signals->handles[TIMER], &due, 0, NULL, NULL, FALSE))
		return -EIO;
	/* Without a socket its event is not looked at: the one that was waited for before sets it still. */
	found = WaitForMultipleObjects(sock == -1 ? HANDLES : ALL_HANDLES, signals->handles, FALSE, INFINITE);
	if (found >= WAIT_OBJECT_0 + ALL_HANDLES)
		return -EIO;
	if (found == WAIT_OBJECT_0 + TIMER && sock != -1 && WaitForSingleObject(signals->handles[SOCKET_EVENT], 0) == WAIT_OBJECT_0)
		return WAIT_DATAGRAM; /* of both the datagram counts */
	return meanings[found - WAIT_OBJECT_0];
}

int64_t waiter_own_pid(void)
{
	return GetCurrentProcessId();
}

int waiter_tell(int64_t pid, enum wait_event event)
{
	char name[64];
	HANDLE handle;
	BOOL done;

	name_of(name, event, (unsigned long)pid);
	handle = OpenEventA(EVENT_MODIFY_STATE, FALSE, name);
	if (!handle)
		return GetLastError() == ERROR_ACCESS_DENIED ? -EPERM : -ESRCH;
	done = SetEvent(handle);
	CloseHandle(handle);
	return done ? 0 : -EIO;
}

bool waiter_is_seen(int64_t pid)
{
	char name[64];
	HANDLE handle;

	name_of(name, WAIT_HOLD, (unsigned long)pid);
	handle = OpenEventA(SYNCHRONIZE, FALSE, name);
	if (!handle)
		return GetLastError() == ERROR_ACCESS_DENIED;
	CloseHandle(handle);
	return true;
}
