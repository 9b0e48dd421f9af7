/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that end, or close what another one waits in: `userstack-threads CASE PEER-ADDRESS`. The peer answers each message on port
 * 5001, after a while, by as much. For test_accel_threads.py.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "call_check.h"

enum { PORT = 5001, SLEEPS_US = 100000, CANCELLED = 6, FILLED = 64, FILLED_BYTES = 64, OVER_MS = 3000 };

static int peer, epoll;

static void *receive(void *by_poll)
{
	struct pollfd polled = { .fd = peer, .events = POLLIN };
	char byte;

	if (by_poll)
		CHECK(poll(&polled, 1, -1) == 1);
	CHECK(recv(peer, &byte, 1, 0) == 1);
	return NULL;
}

static pthread_t begin(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, function, argument) == 0);
	usleep(SLEEPS_US);
	return thread;
}

static void answer(void)
{
	char byte;

	CHECK(send(peer, "x", 1, 0) == 1 && recv(peer, &byte, 1, 0) == 1);
}

/* Threads that drive the stack, and others that wait beside them, are cancelled; what is left goes on. */
static void cancel(void)
{
	pthread_t threads[CANCELLED];
	void *result;
	char byte;

	for (int i = 0; i < CANCELLED; i++)
		threads[i] = begin(receive, i % 2 ? &peer : NULL);
	for (int i = 0; i < CANCELLED; i++) {
		CHECK(pthread_cancel(threads[i]) == 0 && pthread_join(threads[i], &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	answer();
	CHECK(shutdown(peer, SHUT_WR) == 0 && recv(peer, &byte, 1, 0) == 0);
}

static void *wait_in_epoll(void *unused)
{
	struct epoll_event event = { 0 };

	(void)unused;
	CHECK(epoll_wait(epoll, &event, 1, OVER_MS) == 1 && event.data.fd == peer);
	return receive(NULL);
}

/* The wait goes on in what its descriptor meant, whatever has its memory. */
static void close_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = peer };
	char *filled[FILLED];
	pthread_t thread;

	epoll = epoll_create1(0);
	CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, peer, &event) == 0);
	thread = begin(wait_in_epoll, NULL);
	CHECK(close(epoll) == 0);
	for (int i = 0; i < FILLED; i++) {
		filled[i] = malloc(FILLED_BYTES);
		CHECK(filled[i]);
		memset(filled[i], 0xA5, FILLED_BYTES);
	}
	CHECK(send(peer, "x", 1, 0) == 1 && pthread_join(thread, NULL) == 0);
	for (int i = 0; i < FILLED; i++)
		free(filled[i]);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	CHECK(argc == 3 && inet_pton(AF_INET, argv[2], &address.sin_addr) == 1);
	peer = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(peer >= 0 && connect(peer, (const struct sockaddr *)&address, sizeof(address)) == 0);
	if (strcmp(argv[1], "cancel") == 0)
		cancel();
	else
		close_epoll();
	printf("%s: done\n", argv[1]);
	return 0;
}
