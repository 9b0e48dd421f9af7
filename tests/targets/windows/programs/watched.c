/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is watched: it says of each call that it makes which, and its result or error, so that the record can be held
 * against what the program itself has seen. `watched WHAT`: stream, datagrams, asked, handles, queued, routine, children, killed, past, flood, tuned, waits.
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <windows.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <winternl.h>

enum { STREAM_BYTES = 1000, EXIT_KILLED = 77, FLOOD_CALLS = 50000, FILES = 32 };

static const char message[] = "twelve bytes";

/* Say a call and its end, errors by their number. @return result */
static int64_t say(const char *name, int64_t result)
{
	DWORD error = GetLastError();

	if (result < 0)
		printf("%s error %lu\n", name, error);
	else
		printf("%s %lld\n", name, (long long)result);
	SetLastError(error);
	return result;
}
#define SAY(name, call) say(#name, (call))

static void need(bool held, const char *what)
{
	if (held)
		return;
	printf("broke off: %s, error %lu\n", what, GetLastError());
	fflush(stdout);
	exit(EXIT_FAILURE);
}

static SOCKET new_socket(int type)
{
	SOCKET sock = socket(AF_INET, type, 0);

	say("socket", sock == INVALID_SOCKET ? -1 : 0);
	return sock;
}

static struct sockaddr_in loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static struct sockaddr_in name_of(SOCKET sock)
{
	struct sockaddr_in address;
	int length = sizeof(address);

	SAY(getsockname, getsockname(sock, (void *)&address, &length));
	return address;
}

static SOCKET new_listener(void)
{
	struct sockaddr_in address = loopback();
	SOCKET sock = new_socket(SOCK_STREAM);

	SAY(bind, bind(sock, (void *)&address, sizeof(address)));
	SAY(listen, listen(sock, 4));
	return sock;
}

/* Two ends of a connection. */
static void connect_ends(SOCKET ends[2])
{
	SOCKET listener = new_listener();
	struct sockaddr_in address = name_of(listener);

	ends[0] = new_socket(SOCK_STREAM);
	SAY(connect, connect(ends[0], (void *)&address, sizeof(address)));
	ends[1] = accept(listener, NULL, NULL);
	say("accept", ends[1] == INVALID_SOCKET ? -1 : 0);
	SAY(closesocket, closesocket(listener));
}

static void close_ends(const SOCKET ends[2])
{
	SAY(closesocket, closesocket(ends[0]));
	SAY(closesocket, closesocket(ends[1]));
}

static void wait_readable(SOCKET sock)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(sock, &set);
	SAY(select, select(0, &set, NULL, NULL, NULL));
}

static int stream(void)
{
	char data[STREAM_BYTES] = { 0 };
	WSABUF parts[2] = { { 5, data }, { 7, data } };
	WSAPOLLFD polled;
	DWORD count, flags = 0;
	u_long on = 1;
	int one = 1, value, length = sizeof(value);
	struct timeval none = { 0, 1000 };
	fd_set set;
	SOCKET ends[2];

	connect_ends(ends);
	SAY(setsockopt, setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, (void *)&one, sizeof(one)));
	SAY(getsockopt, getsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, (void *)&value, &length));
	SAY(ioctlsocket, ioctlsocket(ends[1], FIONBIO, &on));
	SAY(recv, recv(ends[1], data, sizeof(data), 0));
	FD_ZERO(&set);
	FD_SET(ends[1], &set);
	SAY(select, select(0, &set, NULL, NULL, &none));
	SAY(send, send(ends[0], message, 12, 0));
	wait_readable(ends[1]);
	SAY(recv, recv(ends[1], data, sizeof(data), MSG_PEEK));
	SAY(recv, recv(ends[1], data, sizeof(data), 0));
	say("WSASend", WSASend(ends[0], parts, 2, &count, 0, NULL, NULL) ? -1 : (int64_t)count);
	polled = (WSAPOLLFD){ .fd = ends[1], .events = POLLRDNORM };
	SAY(WSAPoll, WSAPoll(&polled, 1, -1));
	say("WSARecv", WSARecv(ends[1], parts, 2, &count, &flags, NULL, NULL) ? -1 : (int64_t)count);
	SAY(shutdown, shutdown(ends[0], SD_SEND));
	wait_readable(ends[1]);
	SAY(recv, recv(ends[1], data, sizeof(data), 0));
	SAY(send, send(ends[0], message, 12, 0)); /* refused: it is shut */
	close_ends(ends);
	SAY(send, send(ends[0], message, 12, 0)); /* no socket */
	return 3;
}

static int datagrams(void)
{
	struct sockaddr_in address = loopback(), from;
	char data[STREAM_BYTES] = { 0 };
	WSABUF part = { 12, data };
	DWORD count, flags = 0;
	int length = sizeof(from);
	struct addrinfo *found = NULL;
	SOCKET sock = new_socket(SOCK_DGRAM);

	say("getaddrinfo", getaddrinfo("127.0.0.1", "80", NULL, &found) ? -1 : 0);
	say("gethostbyname", gethostbyname("127.0.0.1") ? 0 : -1);
	freeaddrinfo(found);
	SAY(bind, bind(sock, (void *)&address, sizeof(address)));
	address = name_of(sock);
	SAY(sendto, sendto(sock, message, 12, 0, (void *)&address, sizeof(address)));
	SAY(recvfrom, recvfrom(sock, data, sizeof(data), 0, (void *)&from, &length));
	say("WSASendTo", WSASendTo(sock, &part, 1, &count, 0, (void *)&address, sizeof(address), NULL, NULL) ? -1 : (int64_t)count);
	part.len = 5; /* a buffer smaller than the message */
	say("WSARecvFrom", WSARecvFrom(sock, &part, 1, &count, &flags, NULL, NULL, NULL, NULL) ? -1 : (int64_t)count);
	SAY(closesocket, closesocket(sock));
	return 0;
}

static void get_extension(SOCKET sock, GUID guid, void *function)
{
	DWORD count;

	SAY(WSAIoctl, WSAIoctl(sock, SIO_GET_EXTENSION_FUNCTION_POINTER, &guid, sizeof(guid), function, sizeof(void (*)(void)), &count,
			       NULL, NULL));
}

/* A message of 12 bytes from a socket to itself, received by a function that WSAIoctl gave. */
static void receive_message(void)
{
	struct sockaddr_in address = loopback();
	char data[STREAM_BYTES] = { 0 };
	WSABUF part = { sizeof(data), data };
	WSAMSG got = { .name = (void *)&address, .namelen = sizeof(address), .lpBuffers = &part, .dwBufferCount = 1 };
	LPFN_WSARECVMSG receive;
	SOCKET sock = new_socket(SOCK_DGRAM);
	DWORD count;

	SAY(bind, bind(sock, (void *)&address, sizeof(address)));
	get_extension(sock, (GUID)WSAID_WSARECVMSG, &receive);
	address = name_of(sock);
	part.len = 12;
	say("WSASendMsg", WSASendMsg(sock, &got, 0, &count, NULL, NULL) ? -1 : (int64_t)count);
	part.len = sizeof(data);
	say("WSARecvMsg", receive(sock, &got, &count, NULL, NULL) ? -1 : (int64_t)count);
	SAY(closesocket, closesocket(sock));
}

/* Sockets as what they are, handles, and a file that gets their number next, of which nothing is written down. */
static int handles(void)
{
	char data[STREAM_BYTES], path[MAX_PATH];
	DWORD count = 0;
	OVERLAPPED reading = { 0 }, writing = { 0 };
	HANDLE files[FILES];
	SOCKET ends[2];
	bool done, got_number = false;

	connect_ends(ends);
	done = WriteFile((HANDLE)ends[0], message, 12, NULL, &writing);
	say("WriteFile", done ? (int64_t)writing.InternalHigh : -1);
	done = GetOverlappedResult((HANDLE)ends[0], &writing, &count, TRUE);
	say("GetOverlappedResult", done ? 0 : -1);
	say("completion", count);
	done = ReadFile((HANDLE)ends[1], data, sizeof(data), NULL, &reading);
	say("ReadFile", done ? (int64_t)reading.InternalHigh : -1);
	done = GetOverlappedResult((HANDLE)ends[1], &reading, &count, TRUE);
	say("GetOverlappedResult", done ? 0 : -1);
	say("completion", count);
	SAY(CloseHandle, CloseHandle((HANDLE)ends[0]) ? 0 : -1);
	GetModuleFileNameA(NULL, path, sizeof(path));
	for (int i = 0; i < FILES; i++) { /* one of them gets the number */
		files[i] = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
		got_number |= files[i] == (HANDLE)ends[0];
		need(ReadFile(files[i], data, 2, &count, NULL) && memcmp(data, "MZ", 2) == 0, "the program cannot be read");
	}
	need(got_number, "no file has the socket's handle");
	for (int i = 0; i < FILES; i++)
		CloseHandle(files[i]);
	SAY(closesocket, closesocket(ends[1]));
	return 0;
}

/* Functions that are asked for by name, also of the older library, which comes only now. */
static int asked(void)
{
	int(WSAAPI * send_by_name)(SOCKET, const char *, int, int);
	int(WSAAPI * receive_by_name)(SOCKET, char *, int, int);
	FARPROC found = GetProcAddress(GetModuleHandleA("ws2_32.dll"), "send");
	char data[STREAM_BYTES];
	SOCKET ends[2];

	memcpy(&send_by_name, &found, sizeof(found));
	found = GetProcAddress(LoadLibraryA("wsock32.dll"), "recv");
	memcpy(&receive_by_name, &found, sizeof(found));
	connect_ends(ends);
	SAY(send, send_by_name(ends[0], message, 12, 0));
	SAY(recv, receive_by_name(ends[1], data, sizeof(data), 0));
	close_ends(ends);
	receive_message();
	return 0;
}

/* Wait for one end at a port. @return bytes */
static void take_completion(HANDLE port)
{
	OVERLAPPED *overlapped;
	ULONG_PTR key;
	DWORD count;

	SAY(GetQueuedCompletionStatus, GetQueuedCompletionStatus(port, &count, &key, &overlapped, INFINITE) ? 1 : -1);
	say("completion", count);
}

static int queued(void)
{
	char data[STREAM_BYTES], addresses[64];
	WSABUF part = { sizeof(data), data }, sent = { 12, data };
	OVERLAPPED receiving = { 0 }, sending = { 0 }, accepting = { 0 }, connecting = { 0 };
	OVERLAPPED_ENTRY entries[2];
	ULONG entry_count;
	DWORD count = 0, flags = 0;
	SOCKET listener = new_listener(), ends[2];
	struct sockaddr_in address = name_of(listener), own = loopback();
	HANDLE port = CreateIoCompletionPort((HANDLE)listener, NULL, 1, 0);
	LPFN_ACCEPTEX accept_ex;
	LPFN_CONNECTEX connect_ex;

	get_extension(listener, (GUID)WSAID_ACCEPTEX, &accept_ex);
	get_extension(listener, (GUID)WSAID_CONNECTEX, &connect_ex);
	for (int i = 0; i < 2; i++)
		ends[i] = new_socket(SOCK_STREAM);
	CreateIoCompletionPort((HANDLE)ends[0], port, 2, 0);
	CreateIoCompletionPort((HANDLE)ends[1], port, 3, 0);
	SAY(bind, bind(ends[0], (void *)&own, sizeof(own)));
	say("AcceptEx", accept_ex(listener, ends[1], addresses, 0, 32, 32, &count, &accepting) ? 0 : -1);
	say("ConnectEx", connect_ex(ends[0], (void *)&address, sizeof(address), NULL, 0, NULL, &connecting) ? 0 : -1);
	take_completion(port);
	take_completion(port);
	SAY(setsockopt, setsockopt(ends[1], SOL_SOCKET, SO_UPDATE_ACCEPT_CONTEXT, (void *)&listener, sizeof(listener)));
	say("WSARecv", WSARecv(ends[1], &part, 1, NULL, &flags, &receiving, NULL) ? -1 : (int64_t)receiving.InternalHigh);
	SAY(send, send(ends[0], message, 12, 0));
	say("GetQueuedCompletionStatusEx", GetQueuedCompletionStatusEx(port, entries, 1, &entry_count, INFINITE, FALSE) ?
			  (int64_t)entry_count : -1);
	say("completion", entries[0].dwNumberOfBytesTransferred);
	say("WSASend", WSASend(ends[0], &sent, 1, &count, 0, &sending, NULL) ? -1 : (int64_t)count);
	take_completion(port);
	SAY(closesocket, closesocket(listener));
	close_ends(ends);
	CloseHandle(port);
	return 0;
}

static void CALLBACK routine(DWORD error, DWORD count, LPWSAOVERLAPPED overlapped, DWORD flags)
{
	(void)flags;
	need(overlapped->hEvent == (HANDLE)message, "the routine got another OVERLAPPED");
	SetLastError(error);
	say("completion", error ? -1 : (int64_t)count);
}

/* By a routine, and by an event. */
static int routines(void)
{
	char data[STREAM_BYTES];
	WSABUF part = { sizeof(data), data };
	OVERLAPPED overlapped = { .hEvent = (HANDLE)message };
	DWORD count = 0, flags = 0;
	SOCKET ends[2];

	connect_ends(ends);
	say("WSARecv", WSARecv(ends[1], &part, 1, &count, &flags, &overlapped, routine) ? -1 : (int64_t)count);
	SAY(send, send(ends[0], message, 12, 0));
	/* The routine runs in it, so its end comes last. */
	say("SleepEx", SleepEx(INFINITE, TRUE));
	overlapped = (OVERLAPPED){ .hEvent = WSACreateEvent() };
	say("WSARecv", WSARecv(ends[1], &part, 1, &count, &flags, &overlapped, NULL) ? -1 : (int64_t)count);
	SAY(WSAGetOverlappedResult, WSAGetOverlappedResult(ends[1], &overlapped, &count, FALSE, &flags) ? 0 : -1);
	SAY(send, send(ends[0], message, 7, 0));
	SAY(WSAGetOverlappedResult, WSAGetOverlappedResult(ends[1], &overlapped, &count, TRUE, &flags) ? 0 : -1);
	say("completion", count);
	close_ends(ends);
	return 0;
}

/* Start itself with a stream, and pass its exit code on. */
static int children(const char *own)
{
	STARTUPINFOA startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION started;
	char line[2 * MAX_PATH];
	DWORD code;

	snprintf(line, sizeof(line), "\"%s\" stream", own);
	fflush(stdout);
	need(CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &started), "no child");
	WaitForSingleObject(started.hProcess, INFINITE);
	GetExitCodeProcess(started.hProcess, &code);
	return (int)code + 1;
}

static int killed(void)
{
	SOCKET ends[2];

	connect_ends(ends);
	SAY(send, send(ends[0], message, 12, 0));
	fflush(stdout);
	TerminateProcess(GetCurrentProcess(), EXIT_KILLED);
	return 0;
}

/* What is not seen, and has to be told. */
static int past(void)
{
	wchar_t name[] = L"\\Device\\Afd\\own";
	UNICODE_STRING text = { sizeof(name) - sizeof(name[0]), sizeof(name), name };
	OBJECT_ATTRIBUTES attributes = { .Length = sizeof(attributes), .ObjectName = &text };
	GUID rio = { 0x8509e081, 0x96dd, 0x4005, { 0xb1, 0x65, 0x9e, 0x2e, 0xe8, 0xc7, 0x9e, 0x3f } };
	IO_STATUS_BLOCK status;
	char functions[256];
	DWORD count;
	HANDLE file;
	SOCKET sock = new_socket(SOCK_DGRAM);

	NtCreateFile(&file, GENERIC_READ, &attributes, &status, NULL, 0, 0, FILE_OPEN, 0, NULL, 0);
	NtDeviceIoControlFile((HANDLE)sock, NULL, NULL, NULL, &status, 0x12024, NULL, 0, NULL, 0);
	SAY(WSAIoctl, WSAIoctl(sock, _WSAIORW(IOC_WS2, 36), &rio, sizeof(rio), functions, sizeof(functions), &count, NULL, NULL));
	SAY(closesocket, closesocket(sock));
	return 0;
}

/* As many calls as there is no room for on the disk. */
static int flood(void)
{
	SOCKET sock = new_socket(SOCK_DGRAM);
	int value, length = sizeof(value), right = 0;

	for (int i = 0; i < FLOOD_CALLS; i++)
		right += getsockopt(sock, SOL_SOCKET, SO_TYPE, (void *)&value, &length) == 0 && value == SOCK_DGRAM;
	closesocket(sock);
	printf("%d right\n", right);
	return 5;
}

static void print_option(const char *name, SOCKET sock, int level, int option)
{
	int value = 0, length = sizeof(value);

	need(getsockopt(sock, level, option, (void *)&value, &length) == 0, name);
	printf("%s=%d\n", name, value);
}

static void set_option(SOCKET sock, int level, int option, int value)
{
	need(setsockopt(sock, level, option, (void *)&value, sizeof(value)) == 0, "an option cannot be set");
}

/* What sockets hold that the program has not touched, and what they hold when it asks for less. */
static int tuned(void)
{
	SOCKET ends[2], sock = new_socket(SOCK_DGRAM);

	connect_ends(ends);
	for (int i = 0; i < 2; i++) {
		print_option("no_delay", ends[i], IPPROTO_TCP, TCP_NODELAY);
		print_option("send_buffer_bytes", ends[i], SOL_SOCKET, SO_SNDBUF);
		print_option("receive_buffer_bytes", ends[i], SOL_SOCKET, SO_RCVBUF);
	}
	print_option("receive_buffer_bytes", sock, SOL_SOCKET, SO_RCVBUF);
	set_option(ends[0], IPPROTO_TCP, TCP_NODELAY, 0);
	set_option(ends[0], SOL_SOCKET, SO_RCVBUF, 4096);
	print_option("no_delay", ends[0], IPPROTO_TCP, TCP_NODELAY);
	print_option("receive_buffer_bytes", ends[0], SOL_SOCKET, SO_RCVBUF);
	need(setsockopt(INVALID_SOCKET, IPPROTO_TCP, TCP_NODELAY, "", 1) != 0 && WSAGetLastError() == WSAENOTSOCK, "a false socket");
	close_ends(ends);
	closesocket(sock);
	return 0;
}

static int64_t now_us(void)
{
	LARGE_INTEGER now, frequency;

	QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&now);
	return now.QuadPart * 1000000 / frequency.QuadPart;
}

/* A name of a wait, that it did not end before its time, and the processor's time that the thread needed for it. */
static void say_waited(const char *name, int64_t result, int64_t begin_us, int64_t timeout_us)
{
	static uint64_t before_100ns;
	FILETIME ignored, kernel, user;
	uint64_t now_100ns;

	need(now_us() - begin_us >= timeout_us, name);
	GetThreadTimes(GetCurrentThread(), &ignored, &ignored, &kernel, &user);
	now_100ns = ((uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime) + ((uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime);
	printf("%s %lld processor_us %llu\n", name, (long long)result, (unsigned long long)(now_100ns - before_100ns) / 10);
	before_100ns = now_100ns;
}

/* Waits for what does not come, each of its whole time. */
static int waits(void)
{
	enum { WAIT_MS = 300 };
	HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 1, 0);
	WSAEVENT never = WSACreateEvent();
	SOCKET sock = new_socket(SOCK_DGRAM);
	struct sockaddr_in address = loopback();
	WSAPOLLFD polled = { .fd = sock, .events = POLLRDNORM };
	TIMEVAL timeout = { 0, WAIT_MS * 1000 };
	OVERLAPPED *overlapped;
	ULONG_PTR key;
	DWORD count;
	fd_set set;
	int64_t begin_us;

	need(bind(sock, (void *)&address, sizeof(address)) == 0, "no address");
	need(WSAEventSelect(sock, never, FD_READ) == 0, "no event");
	say_waited("begun", 0, now_us(), 0);
	FD_ZERO(&set);
	FD_SET(sock, &set);
	begin_us = now_us();
	say_waited("select", select(0, &set, NULL, NULL, &timeout), begin_us, WAIT_MS * 1000);
	begin_us = now_us();
	say_waited("WSAPoll", WSAPoll(&polled, 1, WAIT_MS), begin_us, (WAIT_MS - 2) * 1000); /* Wine's own ends a little early */
	begin_us = now_us();
	say_waited("GetQueuedCompletionStatus", GetQueuedCompletionStatus(port, &count, &key, &overlapped, WAIT_MS), begin_us,
		   (WAIT_MS - 2) * 1000);
	begin_us = now_us();
	say_waited("WSAWaitForMultipleEvents", WSAWaitForMultipleEvents(1, &never, FALSE, WAIT_MS, FALSE), begin_us, (WAIT_MS - 2) * 1000);
	closesocket(sock);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const struct {
		const char *name;
		int (*run)(void);
	} all[] = { { "stream", stream }, { "datagrams", datagrams }, { "asked", asked }, { "handles", handles }, { "queued", queued },
		    { "routine", routines }, { "killed", killed }, { "past", past }, { "flood", flood },
		    { "tuned", tuned }, { "waits", waits } };
	WSADATA data;

	need(WSAStartup(MAKEWORD(2, 2), &data) == 0, "no Winsock");
	for (int i = 2; i < argc; i++)
		printf("argument [%s]\n", argv[i]);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(what, all[i].name) == 0)
			return all[i].run();
	}
	if (strcmp(what, "children") == 0)
		return children(argv[0]);
	need(false, "what to do?");
	return EXIT_FAILURE;
}
