/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, their addresses and options, and names that are looked up. */
#include "port_watch.h"

#include <string.h>

#include "../port_wide.h"
#include "port_tune.h"

static SOCKET made(struct watch_event *event, int domain, int type, int protocol, SOCKET sock)
{
	DWORD error = GetLastError();

	watch_value(event, 0, domain);
	watch_value(event, 1, type);
	watch_value(event, 2, protocol);
	if (sock != INVALID_SOCKET)
		event->socket = socket_number(sock);
	watch_end_with(event, sock == INVALID_SOCKET ? -1 : 0, error);
	SetLastError(error);
	if (sock != INVALID_SOCKET)
		tune_socket(sock);
	return sock;
}

static SOCKET WSAAPI own_socket(int domain, int type, int protocol)
{
	struct watch_event event;

	watch_begin(&event, WATCH_SOCKET, INVALID_SOCKET);
	return made(&event, domain, type, protocol, socket(domain, type, protocol));
}

static SOCKET WSAAPI own_WSASocketA(int domain, int type, int protocol, LPWSAPROTOCOL_INFOA info, GROUP group, DWORD flags)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WSA_SOCKET_A, INVALID_SOCKET);
	return made(&event, domain, type, protocol, WSASocketA(domain, type, protocol, info, group, flags));
}

static SOCKET WSAAPI own_WSASocketW(int domain, int type, int protocol, LPWSAPROTOCOL_INFOW info, GROUP group, DWORD flags)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WSA_SOCKET_W, INVALID_SOCKET);
	return made(&event, domain, type, protocol, WSASocketW(domain, type, protocol, info, group, flags));
}

static int WSAAPI own_bind(SOCKET sock, const struct sockaddr *address, int length)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_BIND, sock);
	result = bind(sock, address, length);
	if (!result || GetLastError() != WSAEFAULT)
		watch_address(&event, address, length);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_connect(SOCKET sock, const struct sockaddr *address, int length)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_CONNECT, sock);
	result = connect(sock, address, length);
	if (!result || GetLastError() != WSAEFAULT)
		watch_address(&event, address, length);
	watch_end(&event, result);
	if (!result)
		tune_connected(sock);
	return result;
}

static int WSAAPI own_WSAConnect(SOCKET sock, const struct sockaddr *address, int length, LPWSABUF caller, LPWSABUF callee,
				 LPQOS sending, LPQOS group)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_WSA_CONNECT, sock);
	result = WSAConnect(sock, address, length, caller, callee, sending, group);
	if (!result || GetLastError() != WSAEFAULT)
		watch_address(&event, address, length);
	watch_end(&event, result);
	if (!result)
		tune_connected(sock);
	return result;
}

static int WSAAPI own_listen(SOCKET sock, int backlog)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_LISTEN, sock);
	result = listen(sock, backlog);
	watch_value(&event, 0, backlog);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_shutdown(SOCKET sock, int how)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_SHUTDOWN, sock);
	result = shutdown(sock, how);
	watch_value(&event, 0, how);
	watch_end(&event, result);
	return result;
}

static SOCKET accepted(struct watch_event *event, SOCKET sock, const struct sockaddr *address, const int *length)
{
	DWORD error = GetLastError();

	if (sock != INVALID_SOCKET) {
		watch_value(event, 0, socket_number(sock));
		if (address && length)
			watch_address(event, address, *length);
	}
	watch_end_with(event, sock == INVALID_SOCKET ? -1 : 0, error);
	SetLastError(error);
	if (sock != INVALID_SOCKET) {
		tune_socket(sock);
		tune_connected(sock);
	}
	return sock;
}

static SOCKET WSAAPI own_accept(SOCKET sock, struct sockaddr *address, int *length)
{
	struct watch_event event;

	watch_begin(&event, WATCH_ACCEPT, sock);
	return accepted(&event, accept(sock, address, length), address, length);
}

static SOCKET WSAAPI own_WSAAccept(SOCKET sock, struct sockaddr *address, int *length, LPCONDITIONPROC condition, DWORD_PTR data)
{
	struct watch_event event;

	watch_begin(&event, WATCH_WSA_ACCEPT, sock);
	return accepted(&event, WSAAccept(sock, address, length, condition, data), address, length);
}

static int WSAAPI own_closesocket(SOCKET sock)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_CLOSE_SOCKET, sock);
	socket_forget(sock); /* before another thread gets the handle */
	result = closesocket(sock);
	watch_end(&event, result);
	return result;
}

/* Some close a socket as what it is, a handle; a file may get its number next. */
static BOOL WINAPI own_CloseHandle(HANDLE handle)
{
	struct watch_event event;
	BOOL done;

	poll_forget_event(handle);
	if (!socket_is_known(handle))
		return CloseHandle(handle);
	watch_begin(&event, WATCH_CLOSE_HANDLE, (SOCKET)handle);
	socket_forget((SOCKET)handle);
	done = CloseHandle(handle);
	watch_end(&event, done ? 0 : -1);
	return done;
}

static int WSAAPI own_getsockname(SOCKET sock, struct sockaddr *address, int *length)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_GET_SOCK_NAME, sock);
	result = getsockname(sock, address, length);
	if (!result)
		watch_address(&event, address, *length);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_getpeername(SOCKET sock, struct sockaddr *address, int *length)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_GET_PEER_NAME, sock);
	result = getpeername(sock, address, length);
	if (!result)
		watch_address(&event, address, *length);
	watch_end(&event, result);
	return result;
}

static void note_option(struct watch_event *event, int level, int option, const char *value, int length)
{
	int number = 0;

	watch_value(event, 0, level);
	watch_value(event, 1, option);
	if (!value || length < 1 || length > (int)sizeof(number))
		return;
	memcpy(&number, value, (size_t)length);
	watch_value(event, 2, number);
}

static int WSAAPI own_setsockopt(SOCKET sock, int level, int option, const char *value, int length)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_SET_SOCK_OPT, sock);
	result = tune_holds(sock, level, option, value, length) ? 0 : setsockopt(sock, level, option, value, length);
	note_option(&event, level, option, result ? NULL : value, length);
	watch_end(&event, result);
	if (!result && level == SOL_SOCKET && (option == SO_UPDATE_ACCEPT_CONTEXT || option == SO_UPDATE_CONNECT_CONTEXT))
		tune_connected(sock);
	return result;
}

static int WSAAPI own_getsockopt(SOCKET sock, int level, int option, char *value, int *length)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_GET_SOCK_OPT, sock);
	result = getsockopt(sock, level, option, value, length);
	note_option(&event, level, option, result ? NULL : value, result ? 0 : *length);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_ioctlsocket(SOCKET sock, long command, u_long *value)
{
	struct watch_event event;
	int result;

	watch_begin(&event, WATCH_IOCTL_SOCKET, sock);
	poll_no_more_readable();
	result = ioctlsocket(sock, command, value);
	watch_value(&event, 0, (uint32_t)command);
	if (!result)
		watch_value(&event, 1, *value);
	watch_end(&event, result);
	return result;
}

static int WSAAPI own_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	struct watch_event event;
	DWORD error;
	int result;

	watch_begin(&event, WATCH_GET_ADDR_INFO, INVALID_SOCKET);
	watch_text(&event, node);
	result = getaddrinfo(node, service, hints, found);
	error = GetLastError();
	watch_end_with(&event, result ? -1 : 0, (DWORD)result);
	SetLastError(error);
	return result;
}

static int WSAAPI own_GetAddrInfoW(const wchar_t *node, const wchar_t *service, const ADDRINFOW *hints, ADDRINFOW **found)
{
	struct watch_event event;
	char name[WATCH_TEXT_BYTES];
	DWORD error;
	int result;

	watch_begin(&event, WATCH_GET_ADDR_INFO_W, INVALID_SOCKET);
	wide_to(node, name, sizeof(name));
	watch_text(&event, name);
	result = GetAddrInfoW(node, service, hints, found);
	error = GetLastError();
	watch_end_with(&event, result ? -1 : 0, (DWORD)result);
	SetLastError(error);
	return result;
}

static struct hostent *WSAAPI own_gethostbyname(const char *node)
{
	struct watch_event event;
	struct hostent *found;

	watch_begin(&event, WATCH_GET_HOST_BY_NAME, INVALID_SOCKET);
	watch_text(&event, node);
	found = gethostbyname(node);
	watch_end(&event, found ? 0 : -1);
	return found;
}

static const struct hook hooks[] = {
	HOOK("ws2_32.dll", socket),       HOOK("ws2_32.dll", WSASocketA),   HOOK("ws2_32.dll", WSASocketW),
	HOOK("ws2_32.dll", bind),         HOOK("ws2_32.dll", connect),      HOOK("ws2_32.dll", WSAConnect),
	HOOK("ws2_32.dll", listen),       HOOK("ws2_32.dll", shutdown),     HOOK("ws2_32.dll", accept),
	HOOK("ws2_32.dll", WSAAccept),    HOOK("ws2_32.dll", closesocket),  HOOK("ws2_32.dll", getsockname),
	HOOK("ws2_32.dll", getpeername),  HOOK("ws2_32.dll", setsockopt),   HOOK("ws2_32.dll", getsockopt),
	HOOK("ws2_32.dll", ioctlsocket),  HOOK("ws2_32.dll", getaddrinfo),  HOOK("ws2_32.dll", GetAddrInfoW),
	HOOK("ws2_32.dll", gethostbyname), HOOK("kernelbase.dll", CloseHandle), HOOK("kernel32.dll", CloseHandle),
};

const struct hook_table socket_hooks = { hooks, sizeof(hooks) / sizeof(hooks[0]) };
