/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving. */
#include "port_watch.h"

#include "port_tune.h"

static void note_asked(struct watch_event *event, int64_t size_bytes, DWORD flags)
{
	watch_value(event, 0, size_bytes);
	watch_value(event, 1, flags);
}

static int64_t total(const WSABUF *parts, DWORD count)
{
	int64_t size = 0;

	for (DWORD i = 0; parts && i < count; i++)
		size += parts[i].len;
	return size;
}

static int WSAAPI own_send(SOCKET sock, const char *data, int size, int flags)
{
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_SEND, sock);
	result = send(sock, data, size, flags);
	note_asked(&event, size, (DWORD)flags);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_sendto(SOCKET sock, const char *data, int size, int flags, const struct sockaddr *to, int length)
{
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_SEND_TO, sock);
	result = sendto(sock, data, size, flags, to, length);
	note_asked(&event, size, (DWORD)flags);
	if (result >= 0)
		watch_address(&event, to, length);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_recv(SOCKET sock, char *data, int size, int flags)
{
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_RECV, sock);
	poll_readable(sock);
	result = recv(sock, data, size, flags);
	note_asked(&event, size, (DWORD)flags);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_recvfrom(SOCKET sock, char *data, int size, int flags, struct sockaddr *from, int *length)
{
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_RECV_FROM, sock);
	poll_readable(sock);
	result = recvfrom(sock, data, size, flags, from, length);
	note_asked(&event, size, (DWORD)flags);
	if (result >= 0 && from && length)
		watch_address(&event, from, *length);
	watch_end(&event, result);
	return result;
}

/* Where a call says how many bytes: in one of ours where the program does not want to know, which it may only of what is overlapped. */
#define SAID(count) (count) || !overlapped ? (count) : &own_count

static int WSAAPI own_WSASend(SOCKET sock, LPWSABUF parts, DWORD part_count, LPDWORD count, DWORD flags, LPWSAOVERLAPPED overlapped,
			      LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	struct watch_event event;
	DWORD own_count = 0, *said = SAID(count);
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_SEND, sock);
	note_asked(&event, total(parts, part_count), flags);
	routine = operation_begin(&event, overlapped, routine);
	result = WSASend(sock, parts, part_count, said, flags, overlapped, routine);
	operation_begun(&event, overlapped, result ? -1 : (int64_t)*said);
	return result;
}

static int WSAAPI own_WSASendTo(SOCKET sock, LPWSABUF parts, DWORD part_count, LPDWORD count, DWORD flags, const struct sockaddr *to,
				int length, LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	struct watch_event event;
	DWORD own_count = 0, *said = SAID(count);
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_SEND_TO, sock);
	note_asked(&event, total(parts, part_count), flags);
	watch_address(&event, to, length);
	routine = operation_begin(&event, overlapped, routine);
	result = WSASendTo(sock, parts, part_count, said, flags, to, length, overlapped, routine);
	operation_begun(&event, overlapped, result ? -1 : (int64_t)*said);
	return result;
}

static int WSAAPI own_WSARecv(SOCKET sock, LPWSABUF parts, DWORD part_count, LPDWORD count, LPDWORD flags, LPWSAOVERLAPPED overlapped,
			      LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	struct watch_event event;
	DWORD own_count = 0, *said = SAID(count);
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_RECV, sock);
	if (!overlapped)
		poll_readable(sock);
	note_asked(&event, total(parts, part_count), flags ? *flags : 0);
	routine = operation_begin(&event, overlapped, routine);
	result = WSARecv(sock, parts, part_count, said, flags, overlapped, routine);
	operation_begun(&event, overlapped, result ? -1 : (int64_t)*said);
	return result;
}

static int WSAAPI own_WSARecvFrom(SOCKET sock, LPWSABUF parts, DWORD part_count, LPDWORD count, LPDWORD flags, struct sockaddr *from,
				  LPINT length, LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	struct watch_event event;
	DWORD own_count = 0, *said = SAID(count);
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_RECV_FROM, sock);
	if (!overlapped)
		poll_readable(sock);
	note_asked(&event, total(parts, part_count), flags ? *flags : 0);
	routine = operation_begin(&event, overlapped, routine);
	result = WSARecvFrom(sock, parts, part_count, said, flags, from, length, overlapped, routine);
	if (!result && !overlapped && from && length)
		watch_address(&event, from, *length);
	operation_begun(&event, overlapped, result ? -1 : (int64_t)*said);
	return result;
}

/* Files that are sockets; of all others nothing is written down. */

static BOOL WINAPI own_WriteFile(HANDLE file, LPCVOID data, DWORD size, LPDWORD count, LPOVERLAPPED overlapped)
{
	struct watch_event event;
	DWORD own_count = 0, *said = count ? count : &own_count;
	BOOL done;

	if (!socket_is_known(file))
		return WriteFile(file, data, size, count, overlapped);
	watch_begin(&event, WATCH_WRITE_FILE, (SOCKET)file);
	watch_value(&event, 0, size);
	operation_begin(&event, overlapped, NULL);
	done = WriteFile(file, data, size, said, overlapped);
	operation_begun(&event, overlapped, done ? (int64_t)*said : -1);
	return done;
}

static BOOL WINAPI own_ReadFile(HANDLE file, LPVOID data, DWORD size, LPDWORD count, LPOVERLAPPED overlapped)
{
	struct watch_event event;
	DWORD own_count = 0, *said = count ? count : &own_count;
	BOOL done;

	if (!socket_is_known(file))
		return ReadFile(file, data, size, count, overlapped);
	watch_begin(&event, WATCH_READ_FILE, (SOCKET)file);
	watch_value(&event, 0, size);
	operation_begin(&event, overlapped, NULL);
	done = ReadFile(file, data, size, said, overlapped);
	operation_begun(&event, overlapped, done ? (int64_t)*said : -1);
	return done;
}

static const struct hook hooks[] = {
	HOOK("ws2_32.dll", send),        HOOK("ws2_32.dll", sendto),       HOOK("ws2_32.dll", recv),
	HOOK("ws2_32.dll", recvfrom),    HOOK("ws2_32.dll", WSASend),      HOOK("ws2_32.dll", WSASendTo),
	HOOK("ws2_32.dll", WSARecv),     HOOK("ws2_32.dll", WSARecvFrom),
	HOOK("kernelbase.dll", ReadFile), HOOK("kernelbase.dll", WriteFile), HOOK("kernel32.dll", ReadFile),
	HOOK("kernel32.dll", WriteFile),
};

const struct hook_table transfer_hooks = { hooks, sizeof(hooks) / sizeof(hooks[0]) };
