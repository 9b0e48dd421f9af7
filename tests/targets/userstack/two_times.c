/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that have a time or a place in a file in them, whose sizes depend on how this program is compiled: each has to do what it says.
 * Without arguments on sockets of the kernel, to itself; with ADDRESS PORT to a peer of UDP that sends back what it gets, which the
 * user-mode stack may carry. Prints the bits of a time. For test_board_user_stack.py.
 *
 * Exit code 1, with a line on standard error, where a call does not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "call_check.h"

enum { LONG_S = 1000 };

static int make_socket(const char *peer, const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	if (peer) {
		CHECK(inet_pton(AF_INET, peer, &address.sin_addr) == 1);
		address.sin_port = htons((uint16_t)atoi(port));
	} else {
		CHECK(bind(fd, (struct sockaddr *)&address, length) == 0);
		CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	}
	CHECK(connect(fd, (struct sockaddr *)&address, length) == 0);
	return fd;
}

static void try_timeouts(int fd)
{
	const struct timeval none = { 0 }, set = { .tv_sec = 2, .tv_usec = 500000 }, brief = { .tv_usec = 1000 };
	socklen_t length = sizeof(struct timeval);
	struct timeval got = { 0 };
	char byte;

	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &set, sizeof(set)) == 0);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &got, &length) == 0);
	CHECK(length == sizeof(got) && got.tv_sec == 2 && got.tv_usec == 500000);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &set, sizeof(set)) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief)) == 0);
	CHECK(recv(fd, &byte, 1, 0) < 0 && errno == EAGAIN);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) == 0);
}

/* What is there is told at once, what is not after the time. */
static void try_waiting(int fd, int epoll)
{
	const struct timespec brief = { .tv_nsec = 1000000 }, many = { .tv_sec = LONG_S }, wrong = { .tv_nsec = -1 };
	struct timeval brief_us = { .tv_usec = 1000 }, many_us = { .tv_sec = LONG_S };
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	struct epoll_event event;
	fd_set in;

	CHECK(ppoll(&polled, 1, &wrong, NULL) < 0 && errno == EINVAL);
	FD_ZERO(&in);
	for (int there = 0; there < 2; there++) {
		char byte = 'w';

		CHECK(!there || send(fd, &byte, 1, 0) == 1);
		CHECK(poll(&polled, 1, there ? LONG_S * 1000 : 1) == there);
		CHECK(ppoll(&polled, 1, there ? &many : &brief, NULL) == there);
		FD_SET(fd, &in);
		CHECK(pselect(fd + 1, &in, NULL, NULL, there ? &many : &brief, NULL) == there);
		FD_SET(fd, &in);
		CHECK(select(fd + 1, &in, NULL, NULL, there ? &many_us : &brief_us) == there);
		CHECK(epoll_pwait2(epoll, &event, 1, there ? &many : &brief, NULL) == there);
		CHECK(!there || recv(fd, &byte, 1, 0) == 1);
	}
}

/* A time stamp of what came has the caller's size; the stack has none. */
static void try_time_stamp(int fd)
{
	struct { struct cmsghdr header; struct timespec time; char pad[8]; } control;
	char byte = 't';
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	const struct cmsghdr *header;
	struct timespec now;
	int on = 1;

	CHECK(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) == 0);
	CHECK(send(fd, &byte, 1, 0) == 1 && recvmsg(fd, &message, 0) == 1);
	header = CMSG_FIRSTHDR(&message);
	CHECK(header && header->cmsg_type == SO_TIMESTAMPNS && header->cmsg_len == CMSG_LEN(sizeof(now)));
	memcpy(&now, CMSG_DATA(header), sizeof(now));
	CHECK(now.tv_sec > 0 && now.tv_nsec >= 0 && now.tv_nsec < 1000000000);
}

static void try_messages(int fd)
{
	char bytes[8] = "message";
	struct iovec part = { bytes, 7 };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } }, { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } } };
	struct timespec limit = { .tv_sec = LONG_S };

	CHECK(sendmsg(fd, &messages[0].msg_hdr, 0) == 7 && recvmsg(fd, &messages[0].msg_hdr, 0) == 7);
	CHECK(sendmmsg(fd, messages, 2, 0) == 2);
	CHECK(recvmmsg(fd, messages, 2, 0, &limit) == 2 && messages[1].msg_len == 7 && memcmp(bytes, "message", 7) == 0);
}

/* As the kernel has them, whatever this program is compiled for: nothing is there, and the time passes. */
static void try_system_calls(int fd, int epoll)
{
	struct { int64_t s, ns; } brief = { 0, 1000000 };
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	struct { long s, us; } brief_us = { 0, 1000 };
	struct epoll_event event;
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	CHECK(syscall(SYS_epoll_pwait2, epoll, &event, 1, &brief, NULL, 0) == 0);
#ifdef SYS_ppoll_time64
	CHECK(syscall(SYS_ppoll_time64, &polled, 1, &brief, NULL, 0) == 0);
	brief.ns = 1000000; /* the kernel leaves what is left */
	CHECK(syscall(SYS_pselect6_time64, fd + 1, &in, NULL, NULL, &brief, NULL) == 0);
	FD_SET(fd, &in);
#endif
#ifdef SYS__newselect
	CHECK(syscall(SYS__newselect, fd + 1, &in, NULL, NULL, &brief_us) == 0);
#else
	CHECK(syscall(SYS_select, fd + 1, &in, NULL, NULL, &brief_us) == 0);
#endif
	CHECK(syscall(SYS_poll, &polled, 1, 1) == 0);
}

static void try_files(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 3 };
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	FILE *file = tmpfile();
	off_t place = 2;
	char bytes[4];
	int waiting;

	CHECK(file && fputs("0123456789", file) >= 0 && fflush(file) == 0);
	CHECK(fcntl(fileno(file), F_OFD_SETLK, &lock) == 0);
	lock.l_pid = 0;
	lock.l_type = F_RDLCK;
	CHECK(fcntl(fileno(file), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK && lock.l_start == 5 && lock.l_len == 3);
	CHECK(sendfile(fd, fileno(file), &place, 4) == 4 && place == 6);
	CHECK(poll(&polled, 1, LONG_S * 1000) == 1);
	CHECK(ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 4);
	CHECK(recv(fd, bytes, sizeof(bytes), 0) == 4 && memcmp(bytes, "2345", 4) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && recv(fd, bytes, 1, 0) < 0 && errno == EAGAIN);
	fclose(file);
}

int main(int argc, char **argv)
{
	int fd = make_socket(argc > 2 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL), epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };

	CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	try_timeouts(fd);
	try_waiting(fd, epoll);
	try_messages(fd);
	try_system_calls(fd, epoll);
	try_files(fd);
	if (argc <= 2)
		try_time_stamp(make_socket(NULL, NULL));
	printf("%zu\n", 8 * sizeof(time_t));
	return 0;
}
