/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: signals by signalfd, datagrams, ppoll. */
#define _GNU_SOURCE /* ppoll */
#include "port/port_wait.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"
#include "port/port.h"

int waiter_open(struct waiter *waiter, bool holds)
{
	sigset_t mask;

	*waiter = (struct waiter){ .signals = -1, .sock = -1 };
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	if (holds) {
		sigaddset(&mask, SIGUSR1);
		sigaddset(&mask, SIGUSR2);
	}
	if (sigprocmask(SIG_BLOCK, &mask, NULL))
		return -errno;
	waiter->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	return waiter->signals < 0 ? -errno : 0;
}

int waiter_open_socket(struct waiter *waiter)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	/* Not connected: what comes from somewhere else is to be seen, and named. */
	waiter->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (waiter->sock < 0 || bind(waiter->sock, (struct sockaddr *)&any, sizeof(any)))
		return -errno;
	return 0;
}

void waiter_close(struct waiter *waiter)
{
	if (waiter->sock >= 0)
		close(waiter->sock);
	if (waiter->signals >= 0)
		close((int)waiter->signals);
	*waiter = (struct waiter){ .signals = -1, .sock = -1 };
}

int waiter_send(const struct waiter *waiter, const struct address *peer, const void *data, size_t size_bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(peer->port), .sin_addr.s_addr = htonl(peer->ipv4) };

	return sendto(waiter->sock, data, size_bytes, 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* Read one signal. Returns what it means, or -errno. */
static int signal_take(const struct waiter *waiter)
{
	struct signalfd_siginfo info;

	if (read((int)waiter->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return -EIO;
	switch (info.ssi_signo) {
	case SIGUSR1:
		return WAIT_HOLD;
	case SIGUSR2:
		return WAIT_LISTEN;
	default:
		return WAIT_END;
	}
}

/* Read one datagram. Returns false where there is none after all: an error of an earlier one was reported instead. */
static bool datagram_take(const struct waiter *waiter, struct datagram *datagram)
{
	struct sockaddr_in source = { 0 };
	socklen_t length = sizeof(source);
	ssize_t size = recvfrom(waiter->sock, datagram->bytes, sizeof(datagram->bytes), MSG_DONTWAIT,
				(struct sockaddr *)&source, &length);

	datagram->received_realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	if (size < 0)
		return false;
	datagram->size_bytes = (size_t)size;
	datagram->source = (struct address){ .ipv4 = ntohl(source.sin_addr.s_addr), .port = ntohs(source.sin_port) };
	return true;
}

/* Wait until one of the first `count` can be read, or the deadline. Returns as ppoll, but -errno. */
static int wait_until(struct pollfd *fds, unsigned int count, int64_t deadline_monotonic_ns)
{
	for (;;) {
		int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		struct timespec left = { 0 };
		int ready;

		if (left_ns > 0)
			left = (struct timespec){ left_ns / NS_PER_S, left_ns % NS_PER_S };
		ready = ppoll(fds, count, &left, NULL);
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready > 0 || (ready == 0 && left_ns <= 0))
			return ready;
	}
}

int waiter_wait(struct waiter *waiter, int64_t deadline_monotonic_ns, struct datagram *datagram)
{
	struct pollfd fds[2] = { { .fd = (int)waiter->signals, .events = POLLIN }, { .fd = waiter->sock, .events = POLLIN } };

	for (;;) {
		int ready = wait_until(fds, datagram ? 2 : 1, deadline_monotonic_ns);

		if (ready <= 0)
			return ready < 0 ? ready : WAIT_TIME;
		if (fds[0].revents)
			return signal_take(waiter);
		if (datagram && fds[1].revents && datagram_take(waiter, datagram))
			return WAIT_DATAGRAM;
	}
}

int waiter_wait_socket(struct waiter *waiter, int64_t deadline_monotonic_ns, intptr_t sock)
{
	struct pollfd fds[2] = { { .fd = (int)waiter->signals, .events = POLLIN }, { .fd = (int)sock, .events = POLLIN } };
	int ready = wait_until(fds, sock < 0 ? 1 : 2, deadline_monotonic_ns);

	if (ready <= 0)
		return ready < 0 ? ready : WAIT_TIME;
	return fds[0].revents ? signal_take(waiter) : WAIT_DATAGRAM;
}

int64_t waiter_own_pid(void)
{
	return getpid();
}

/* Does a process keep a signal for itself, as a waiter does? Another one may have got its number, and would end. */
static bool keeps_signal(int64_t pid, int number)
{
	char name[48], line[128];
	unsigned long long blocked = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%lld/status", (long long)pid);
	file = fopen(name, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file) && sscanf(line, "SigBlk: %llx", &blocked) != 1)
		;
	fclose(file);
	return blocked >> (number - 1) & 1;
}

int waiter_tell(int64_t pid, enum wait_event event)
{
	int number = event == WAIT_HOLD ? SIGUSR1 : event == WAIT_LISTEN ? SIGUSR2 : SIGTERM;

	if (pid <= 1 || !keeps_signal(pid, number))
		return -ESRCH;
	return kill((pid_t)pid, number) ? -errno : 0;
}

bool waiter_is_seen(int64_t pid)
{
	return pid > 1 && keeps_signal(pid, SIGUSR1);
}
