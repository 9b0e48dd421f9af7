/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a call that waits when a signal's handler runs: `userstack-interrupted SETTER CALL OWN-ADDRESS PEER-ADDRESS`. The
 * peer answers a datagram on port 5003 by what the call waits for. A timer's handler asks it to after some runs, but only where the
 * call is to go on: where it is to end it does so at any of them, however late it was. Prints what the call says, and what the
 * program is told of its handler. For test_accel_signals.py.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "call_check.h"

enum { PORT = 5001, ASK_PORT = 5003, TICK_US = 20000, ASKED_AT = 3, NEVER = -1, LONG_S = 3600 };

static volatile sig_atomic_t ticks, asked_at = NEVER;
static int asks;

/* CHECK for a handler, which may have interrupted what CHECK prints with. */
#define CHECK_IN_HANDLER(condition) \
	do { \
		static const char text[] = "in a handler: not so: " #condition "\n"; \
		if (!(condition)) \
			_exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1); \
	} while (0)

static void count(void)
{
	int before = errno; /* NOLINT(bugprone-signal-handler): a handler may use errno, here a function */

	if (++ticks == asked_at)
		CHECK_IN_HANDLER(send(asks, "go", 2, 0) == 2);
	errno = before;
}

static void tick(int number)
{
	CHECK_IN_HANDLER(number == SIGALRM);
	count();
}

static void tick_with_info(int number, siginfo_t *info, void *context)
{
	CHECK_IN_HANDLER(number == SIGALRM && info->si_signo == SIGALRM && context);
	count();
}

static void set_by_sigaction(int flags)
{
	struct sigaction action = { .sa_flags = flags };

	if (flags & SA_SIGINFO)
		action.sa_sigaction = tick_with_info;
	else
		action.sa_handler = tick;
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
}

static void set(const char *setter)
{
	if (strcmp(setter, "sigaction") == 0) {
		set_by_sigaction(0);
	} else if (strcmp(setter, "info") == 0) {
		set_by_sigaction(SA_SIGINFO);
	} else if (strcmp(setter, "restart") == 0) {
		set_by_sigaction(SA_RESTART);
	} else if (strcmp(setter, "restart-info") == 0) {
		set_by_sigaction(SA_RESTART | SA_SIGINFO);
	} else if (strcmp(setter, "sigset") == 0) {
		CHECK(sigset(SIGALRM, tick) == SIG_DFL);
	} else {
		CHECK(signal(SIGALRM, tick) == SIG_DFL);
		if (strcmp(setter, "siginterrupt") == 0)
			CHECK(siginterrupt(SIGALRM, 1) == 0);
		else
			CHECK(strcmp(setter, "signal") == 0);
	}
}

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
	return address;
}

static int make(int type, const char *peer, uint16_t port)
{
	struct sockaddr_in address = address_of(peer, port);
	int fd = socket(AF_INET, type, 0);

	CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static int listen_at(const char *own)
{
	struct sockaddr_in address = address_of(own, PORT);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	CHECK(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0);
	return fd;
}

static void begin_ticks(int asks_at)
{
	struct itimerval timer = { { 0, TICK_US }, { 0, TICK_US } };

	asked_at = asks_at;
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void end_ticks(void)
{
	struct itimerval none = { 0 };

	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
}

static long wait_by(const char *call, const char *own, const char *peer, int goes_on)
{
	struct timeval timeout = { .tv_sec = LONG_S };
	struct pollfd polled = { .events = POLLIN };
	char data[8];
	long result;
	int fd;

	if (strcmp(call, "accept") == 0)
		fd = listen_at(own);
	else
		fd = make(strcmp(call, "datagram") == 0 ? SOCK_DGRAM : SOCK_STREAM, peer, PORT);
	if (strcmp(call, "timeout") == 0)
		CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0);
	if (strcmp(call, "datagram") == 0)
		CHECK(send(fd, "here", 4, 0) == 4);
	polled.fd = fd;
	goes_on = goes_on && strcmp(call, "timeout") != 0 && strcmp(call, "poll") != 0;
	begin_ticks(goes_on ? ASKED_AT : NEVER);
	if (strcmp(call, "accept") == 0)
		result = accept(fd, NULL, NULL) >= 0 ? 0 : -1;
	else if (strcmp(call, "poll") == 0)
		result = poll(&polled, 1, -1);
	else
		result = recv(fd, data, sizeof(data), 0);
	end_ticks();
	return result;
}

/* A handler for one time: what is told before and after it ran. */
static void try_once(void)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = (int)SA_RESETHAND }, told;

	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGALRM, NULL, &told) == 0);
	CHECK(told.sa_handler == tick && told.sa_flags & (int)SA_RESETHAND);
	raise(SIGALRM);
	CHECK(sigaction(SIGALRM, NULL, &told) == 0 && told.sa_handler == SIG_DFL);
	CHECK(signal(SIGALRM, tick) == SIG_DFL && signal(SIGALRM, SIG_IGN) == tick && signal(SIGALRM, SIG_DFL) == SIG_IGN);
	CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL && sigaction(_NSIG, &action, NULL) == -1 && errno == EINVAL);
	CHECK(signal(_NSIG, tick) == SIG_ERR && errno == EINVAL);
}

int main(int argc, char **argv)
{
	struct sigaction told;
	int goes_on, err;
	sigset_t blocked;
	long result;

	CHECK(argc == 5);
	try_once();
	asks = make(SOCK_DGRAM, argv[4], ASK_PORT);
	set(argv[1]);
	CHECK(sigaction(SIGALRM, NULL, &told) == 0);
	goes_on = (told.sa_flags & SA_RESTART) != 0;
	result = wait_by(argv[2], argv[3], argv[4], goes_on);
	err = result < 0 ? errno : 0;
	CHECK(sigaction(SIGALRM, NULL, &told) == 0);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGALRM)); /* as it was within the handler */
	CHECK(told.sa_flags & SA_SIGINFO ? told.sa_sigaction == tick_with_info : told.sa_handler == tick);
	printf("%s %s: %ld %s, flags %#x\n", argv[1], argv[2], result, err ? strerrorname_np(err) : "", (unsigned int)told.sa_flags);
	return 0;
}
