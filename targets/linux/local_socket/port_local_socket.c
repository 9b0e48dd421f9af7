/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "local_socket/port_local_socket.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, AGAIN_NS = 100 * 1000 * 1000 };

static int address_of(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

static int close_and_fail(int descriptor)
{
	int err = -errno;

	if (descriptor >= 0)
		close(descriptor);
	return err;
}

int local_connect(const char *path)
{
	struct sockaddr_un address;
	int err = address_of(path, &address), connection;

	if (err)
		return err;
	connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof(address)) < 0)
		return close_and_fail(connection);
	return connection;
}

/* Whether a path is a socket's, and no file's, to which connect(2) is refused, too. */
static bool is_socket(const char *path)
{
	struct stat about;

	return lstat(path, &about) == 0 && S_ISSOCK(about.st_mode);
}

static int make_listening(const char *path, int64_t group)
{
	struct sockaddr_un address;
	int listener, probe, err = address_of(path, &address);

	if (err)
		return err;
	probe = local_connect(path);
	if (probe == -ECONNREFUSED && is_socket(path))
		unlink(path);
	if (probe >= 0)
		close(probe);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(path, group >= 0 ? 0660 : 0600) < 0 || (group >= 0 && chown(path, (uid_t)-1, (gid_t)group) < 0) ||
	    listen(listener, BACKLOG) < 0)
		return close_and_fail(listener);
	return listener;
}

/* Wait for a descriptor by the name of a listener's socket. */
static int watch_for(const struct local_listener *listener, int how, int descriptor, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = listener->socket };

	return epoll_ctl(listener->epoll, how, descriptor, &event) ? -errno : 0;
}

int local_listen(struct local_listener *listener, int epoll, const char *path, int64_t group)
{
	int err;

	*listener = (struct local_listener){ .epoll = epoll, .socket = make_listening(path, group), .timer = -1 };
	if (listener->socket < 0)
		return listener->socket;
	listener->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (listener->timer < 0)
		return -errno;
	err = watch_for(listener, EPOLL_CTL_ADD, listener->timer, EPOLLIN);
	return err ? err : watch_for(listener, EPOLL_CTL_ADD, listener->socket, EPOLLIN);
}

static void rest(const struct local_listener *listener, bool rests)
{
	const struct itimerspec soon = { .it_value.tv_nsec = rests ? AGAIN_NS : 0 };

	timerfd_settime(listener->timer, 0, &soon, NULL); /* by which it is not readable any more, either */
	watch_for(listener, EPOLL_CTL_MOD, listener->socket, rests ? 0 : EPOLLIN);
}

static int accept_one(int socket, struct ucred *who)
{
	int connection = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t size = sizeof(*who);

	if (connection < 0 || getsockopt(connection, SOL_SOCKET, SO_PEERCRED, who, &size) < 0)
		return close_and_fail(connection);
	return connection;
}

int local_accept(struct local_listener *listener, struct ucred *who)
{
	int connection = accept_one(listener->socket, who);
	bool nobody_waits = connection == -EAGAIN || connection == -EINTR || connection == -ECONNABORTED;
	bool is_known = connection == listener->said_error;

	rest(listener, connection < 0 && !nobody_waits);
	if (nobody_waits)
		return -EAGAIN;
	listener->said_error = connection < 0 ? connection : 0;
	return connection < 0 && is_known ? -EAGAIN : connection;
}

uint64_t local_allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max;
}

int local_end_signals(void)
{
	sigset_t set;
	int signals;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	return signals < 0 ? -errno : signals;
}

int local_watch(int epoll, int descriptor)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = descriptor };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) ? -errno : 0;
}

int local_answer(int connection, const void *about, size_t about_bytes, const int *descriptors, size_t descriptor_count,
		 const char *text, size_t text_bytes)
{
	struct iovec parts[2] = { { (void *)(uintptr_t)about, about_bytes }, { (void *)(uintptr_t)text, text_bytes } };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(LOCAL_DESCRIPTORS_MAX * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = text_bytes ? 2 : 1 };

	if (descriptor_count) {
		control.header.cmsg_len = CMSG_LEN(descriptor_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), descriptors, descriptor_count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(descriptor_count * sizeof(int));
	}
	return sendmsg(connection, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}
