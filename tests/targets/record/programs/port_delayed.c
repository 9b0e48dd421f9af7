/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with one fault each that delays them, and the same without it, for Linux and Windows:
 * `delayed writes|buffer|sleep|thread|name|late PORT [repaired]`. Their peers, on this machine, are of the test's own.
 */
#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#else
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXCHANGES = 24, ANSWERS = 200, ANSWER_BYTES = 8192, SMALL_BYTES = 512, LOOKUPS = 100, CONNECTIONS = 4, PAUSE_MS = 10 };
enum { REQUEST_BYTES = 32, PIECE_BYTES = 16384, WORK_US = 2000, LATE_WORK_US = 6000 };

static unsigned short port;
static bool repaired;

static void need(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "broke off: %s\n", what);
	exit(EXIT_FAILURE);
}

/* What the systems call differently. */

#ifdef _WIN32
typedef HANDLE thread_handle;
typedef DWORD thread_result;
#define THREAD_CALL WINAPI

static void begin(void)
{
	WSADATA data;

	need(WSAStartup(MAKEWORD(2, 2), &data) == 0, "no Winsock");
}

static void end_socket(SOCKET sock)
{
	closesocket(sock);
}

static void never_block(SOCKET sock)
{
	u_long on = 1;

	need(ioctlsocket(sock, FIONBIO, &on) == 0, "FIONBIO");
}

static void pause_ms(unsigned int time_ms)
{
	Sleep(time_ms);
}

static uint64_t now_us(void)
{
	LARGE_INTEGER now, tick_hz;

	QueryPerformanceCounter(&now);
	QueryPerformanceFrequency(&tick_hz);
	return (uint64_t)now.QuadPart * 1000000 / (uint64_t)tick_hz.QuadPart;
}

static thread_handle start(thread_result(THREAD_CALL *run)(void *), void *own)
{
	thread_handle thread = CreateThread(NULL, 0, run, own, 0, NULL);

	need(thread != NULL, "no thread");
	return thread;
}

static void join(thread_handle thread)
{
	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
}
#else
typedef int SOCKET;
typedef pthread_t thread_handle;
typedef void *thread_result;
#define THREAD_CALL

static void begin(void)
{
}

static void end_socket(SOCKET sock)
{
	close(sock);
}

static void never_block(SOCKET sock)
{
	int on = 1;

	need(ioctl(sock, FIONBIO, &on) == 0, "FIONBIO");
}

static void pause_ms(unsigned int time_ms)
{
	usleep(time_ms * 1000);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static thread_handle start(thread_result(THREAD_CALL *run)(void *), void *own)
{
	thread_handle thread;

	need(pthread_create(&thread, NULL, run, own) == 0, "no thread");
	return thread;
}

static void join(thread_handle thread)
{
	pthread_join(thread, NULL);
}
#endif

static SOCKET connect_peer(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	SOCKET sock = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(connect(sock, (void *)&address, sizeof(address)) == 0, "connect");
	return sock;
}

static void send_all(SOCKET sock, const char *data, int size)
{
	need(send(sock, data, (size_t)size, 0) == size, "send");
}

/* Read as many bytes, by reads with so much room. */
static void receive_all(SOCKET sock, int size, int room)
{
	char data[ANSWER_BYTES];

	while (size > 0) {
		int count = (int)recv(sock, data, (size_t)(room < size ? room : size), 0);

		need(count > 0, "recv");
		size -= count;
	}
}

static void work(unsigned int time_us)
{
	uint64_t end_us = now_us() + time_us;

	while (now_us() < end_us) {
	}
}

static void look_up(void)
{
	struct addrinfo hints = { .ai_family = AF_INET }, *found = NULL;

	need(getaddrinfo("localhost", NULL, &hints, &found) == 0, "localhost has no address");
	freeaddrinfo(found);
}

/* Head and body of a request by a write each. */
static void writes(void)
{
	const char request[REQUEST_BYTES] = { 0 };
	int on = repaired;
	SOCKET sock = connect_peer();

	if (repaired)
		need(setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, (void *)&on, sizeof(on)) == 0, "TCP_NODELAY");
	for (int i = 0; i < EXCHANGES; i++) {
		send_all(sock, request, 4);
		send_all(sock, request + 4, REQUEST_BYTES - 4);
		receive_all(sock, REQUEST_BYTES, REQUEST_BYTES);
	}
	end_socket(sock);
}

/* An answer by many reads. */
static void buffer(void)
{
	const char request[REQUEST_BYTES] = { 0 };
	SOCKET sock = connect_peer();

	for (int i = 0; i < ANSWERS; i++) {
		send_all(sock, request, REQUEST_BYTES);
		receive_all(sock, ANSWER_BYTES, repaired ? ANSWER_BYTES : SMALL_BYTES);
	}
	end_socket(sock);
}

/* The socket is asked every ten milliseconds. */
static void sleeping(void)
{
	char data[REQUEST_BYTES];
	SOCKET sock = connect_peer();
	int count;

	if (!repaired)
		never_block(sock);
	do {
		if (!repaired)
			pause_ms(PAUSE_MS);
		count = (int)recv(sock, data, sizeof(data), 0);
		if (count > 0)
			send_all(sock, data, count);
	} while (count != 0);
	end_socket(sock);
}

/* One request of a peer. @return false: it has no more */
static bool serve(SOCKET sock)
{
	char data[REQUEST_BYTES];
	int count = (int)recv(sock, data, sizeof(data), 0);

	if (count <= 0)
		return false;
	work(WORK_US);
	send_all(sock, data, count);
	return true;
}

static thread_result THREAD_CALL serve_one(void *own)
{
	while (serve(*(SOCKET *)own)) {
	}
	return 0;
}

static void serve_all(const SOCKET *socks)
{
	bool open[CONNECTIONS];
	int count = CONNECTIONS, highest = 0;
	fd_set set;

	for (int i = 0; i < CONNECTIONS; i++) {
		open[i] = true;
		highest = (int)socks[i] > highest ? (int)socks[i] : highest;
	}
	while (count > 0) {
		FD_ZERO(&set);
		for (int i = 0; i < CONNECTIONS; i++) {
			if (open[i])
				FD_SET(socks[i], &set);
		}
		need(select(highest + 1, &set, NULL, NULL, NULL) > 0, "select");
		for (int i = 0; i < CONNECTIONS; i++) {
			if (!open[i] || !FD_ISSET(socks[i], &set))
				continue;
			open[i] = serve(socks[i]);
			count -= !open[i];
		}
	}
}

/* Several peers are served by one thread. */
static void threads(void)
{
	SOCKET socks[CONNECTIONS];
	thread_handle served[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++)
		socks[i] = connect_peer();
	if (!repaired)
		serve_all(socks);
	for (int i = 0; repaired && i < CONNECTIONS; i++)
		served[i] = start(serve_one, &socks[i]);
	for (int i = 0; repaired && i < CONNECTIONS; i++)
		join(served[i]);
	for (int i = 0; i < CONNECTIONS; i++)
		end_socket(socks[i]);
}

/* The peer's name is looked up for each request. */
static void name(void)
{
	const char request[REQUEST_BYTES] = { 0 };
	SOCKET sock;

	if (repaired)
		look_up();
	sock = connect_peer();
	for (int i = 0; i < LOOKUPS; i++) {
		if (!repaired)
			look_up();
		send_all(sock, request, REQUEST_BYTES);
		receive_all(sock, REQUEST_BYTES, REQUEST_BYTES);
	}
	end_socket(sock);
}

/* Data come faster than a reader takes them that works on each piece before it reads the next. */
static void late(void)
{
	char data[PIECE_BYTES];
	SOCKET sock = connect_peer();
	int pieces = 0;

	while (recv(sock, data, sizeof(data), 0) > 0) {
		pieces++;
		if (!repaired)
			work(LATE_WORK_US);
	}
	end_socket(sock);
	for (int i = 0; repaired && i < pieces; i++)
		work(LATE_WORK_US);
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "writes", writes }, { "buffer", buffer }, { "sleep", sleeping }, { "thread", threads }, { "name", name },
		    { "late", late } };

	need(argc > 2, "what, and which port?");
	port = (unsigned short)strtol(argv[2], NULL, 10);
	repaired = argc > 3 && strcmp(argv[3], "repaired") == 0;
	begin();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) == 0) {
			all[i].run();
			return EXIT_SUCCESS;
		}
	}
	need(false, "what to do?");
	return EXIT_FAILURE;
}
