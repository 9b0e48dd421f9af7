/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a program gets by WSAIoctl, and those of them that mswsock exports. */
#include "port_watch.h"

#include <string.h>

#include "port_tune.h"

/* What mingw-w64 has no name for: SIO_GET_MULTIPLE_EXTENSION_FUNCTION_POINTER, by which Registered I/O is got. */
#define GET_MULTIPLE_FUNCTIONS _WSAIORW(IOC_WS2, 36)

/* What Windows has given for each; those of mswsock are there from the beginning. */
static LPFN_ACCEPTEX accept_ex = AcceptEx;
static LPFN_CONNECTEX connect_ex;
static LPFN_DISCONNECTEX disconnect_ex;
static LPFN_TRANSMITFILE transmit_file = TransmitFile;
static LPFN_WSARECVMSG receive_message;
static LPFN_WSASENDMSG send_message = WSASendMsg;

static BOOL PASCAL own_AcceptEx(SOCKET listener, SOCKET sock, PVOID data, DWORD size, DWORD local_bytes, DWORD peer_bytes,
				LPDWORD count, LPOVERLAPPED overlapped)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_ACCEPT_EX, listener);
	watch_value(&event, 0, socket_number(sock));
	watch_value(&event, 1, size);
	operation_begin(&event, overlapped, NULL);
	done = accept_ex(listener, sock, data, size, local_bytes, peer_bytes, count, overlapped);
	operation_begun(&event, overlapped, done ? 0 : -1);
	return done;
}

static BOOL PASCAL own_ConnectEx(SOCKET sock, const struct sockaddr *address, int length, PVOID data, DWORD size, LPDWORD count,
				 LPOVERLAPPED overlapped)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_CONNECT_EX, sock);
	watch_value(&event, 0, size);
	watch_address(&event, address, length);
	operation_begin(&event, overlapped, NULL);
	done = connect_ex(sock, address, length, data, size, count, overlapped);
	operation_begun(&event, overlapped, done ? 0 : -1);
	return done;
}

static BOOL PASCAL own_DisconnectEx(SOCKET sock, LPOVERLAPPED overlapped, DWORD flags, DWORD reserved)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_DISCONNECT_EX, sock);
	watch_value(&event, 1, flags);
	operation_begin(&event, overlapped, NULL);
	done = disconnect_ex(sock, overlapped, flags, reserved);
	operation_begun(&event, overlapped, done ? 0 : -1);
	return done;
}

static BOOL PASCAL own_TransmitFile(SOCKET sock, HANDLE file, DWORD size, DWORD size_of_one, LPOVERLAPPED overlapped,
				    LPTRANSMIT_FILE_BUFFERS around, DWORD flags)
{
	struct watch_event event;
	BOOL done;

	watch_begin(&event, WATCH_TRANSMIT_FILE, sock);
	watch_value(&event, 0, size);
	watch_value(&event, 1, flags);
	operation_begin(&event, overlapped, NULL);
	done = transmit_file(sock, file, size, size_of_one, overlapped, around, flags);
	operation_begun(&event, overlapped, done ? (int64_t)size : -1);
	return done;
}

static int64_t total(const WSAMSG *message)
{
	int64_t size = 0;

	for (DWORD i = 0; message && i < message->dwBufferCount; i++)
		size += message->lpBuffers[i].len;
	return size;
}

static INT PASCAL own_WSARecvMsg(SOCKET sock, LPWSAMSG message, LPDWORD count, LPWSAOVERLAPPED overlapped,
				 LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	DWORD own_count = 0, *said = count ? count : &own_count;
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_RECV_MSG, sock);
	watch_value(&event, 0, total(message));
	watch_value(&event, 1, message ? message->dwFlags : 0);
	routine = operation_begin(&event, overlapped, routine);
	result = receive_message(sock, message, overlapped ? said : count, overlapped, routine);
	if (!result && !overlapped && message->name)
		watch_address(&event, message->name, message->namelen);
	operation_begun(&event, overlapped, result ? -1 : (int64_t)*said);
	return result;
}

static INT PASCAL own_WSASendMsg(SOCKET sock, LPWSAMSG message, DWORD flags, LPDWORD count, LPWSAOVERLAPPED overlapped,
				 LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	DWORD own_count = 0, *said = count ? count : &own_count;
	struct watch_event event;
	int result;

	tune_thread();
	watch_begin(&event, WATCH_WSA_SEND_MSG, sock);
	watch_value(&event, 0, total(message));
	watch_value(&event, 1, flags);
	if (message && message->name)
		watch_address(&event, message->name, message->namelen);
	routine = operation_begin(&event, overlapped, routine);
	result = send_message(sock, message, flags, overlapped ? said : count, overlapped, routine);
	operation_begun(&event, overlapped, result ? -1 : (int64_t)*said);
	return result;
}

/* What is given in place of a function that the program asks for by its GUID. */
static const struct extension {
	GUID guid;
	any_function *next;
	any_function own;
} extensions[] = {
	{ WSAID_ACCEPTEX, (any_function *)&accept_ex, (any_function)own_AcceptEx },
	{ WSAID_CONNECTEX, (any_function *)&connect_ex, (any_function)own_ConnectEx },
	{ WSAID_DISCONNECTEX, (any_function *)&disconnect_ex, (any_function)own_DisconnectEx },
	{ WSAID_TRANSMITFILE, (any_function *)&transmit_file, (any_function)own_TransmitFile },
	{ WSAID_WSARECVMSG, (any_function *)&receive_message, (any_function)own_WSARecvMsg },
	{ WSAID_WSASENDMSG, (any_function *)&send_message, (any_function)own_WSASendMsg },
};

/* Put ours in the place of a function that Windows has just given. */
static void replace(const GUID *guid, any_function *given)
{
	static long said;

	for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
		if (memcmp(guid, &extensions[i].guid, sizeof(*guid)) != 0)
			continue;
		*extensions[i].next = *given; /* the same for all sockets of TCP and UDP */
		*given = extensions[i].own;
		return;
	}
	watch_note_once(&said, "asks for an extension of Winsock whose calls are not seen");
}

static int WSAAPI own_WSAIoctl(SOCKET sock, DWORD command, LPVOID in, DWORD in_bytes, LPVOID out, DWORD out_bytes, LPDWORD count,
			       LPWSAOVERLAPPED overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	static long said;
	struct watch_event event;
	DWORD error;
	int result;

	watch_begin(&event, WATCH_WSA_IOCTL, sock);
	if (command == FIONBIO)
		poll_no_more_readable();
	watch_value(&event, 0, command);
	routine = operation_begin(&event, overlapped, routine);
	result = WSAIoctl(sock, command, in, in_bytes, out, out_bytes, count, overlapped, routine);
	operation_begun(&event, overlapped, result ? -1 : 0);
	error = GetLastError();
	if (!result && command == SIO_GET_EXTENSION_FUNCTION_POINTER && in_bytes >= sizeof(GUID) && out_bytes >= sizeof(any_function))
		replace(in, out);
	if (command == GET_MULTIPLE_FUNCTIONS)
		watch_note_once(&said, "asks for Registered I/O, whose calls are not seen");
	SetLastError(error);
	return result;
}

static const struct hook hooks[] = {
	HOOK("ws2_32.dll", WSAIoctl),
	HOOK("ws2_32.dll", WSASendMsg),
	HOOK("mswsock.dll", AcceptEx),
	HOOK("mswsock.dll", TransmitFile),
};

const struct hook_table extension_hooks = { hooks, sizeof(hooks) / sizeof(hooks[0]) };
