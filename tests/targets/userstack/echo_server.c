/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that hostile peers are let loose on: `echo_server PORT`. TCP: what comes goes back, and nothing more is read before that
 * has left; at PORT + 1 it says a word and closes first. UDP at PORT: datagrams go back. Says `ready`; SIGTERM ends it in order.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 65536, EVENTS_MAX = 64, BACKLOG = 64 };
enum kind { ECHO, FAREWELL, DATAGRAMS, SIGNALS, CONNECTION };

struct source {
	enum kind kind;
	int fd;
	size_t begin, end;
	bool peer_closed;
	struct source *next, **place; /* of connections: all of them */
	char data[];
};

static struct source *connections;
static int epoll_fd;

static void watch(struct source *source, int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(epoll_fd, operation, source->fd, &event)) {
		perror("epoll_ctl");
		exit(3);
	}
}

static struct source *add(enum kind kind, int fd)
{
	struct source *source = calloc(1, sizeof(*source) + (kind == CONNECTION ? BUFFER_BYTES : 0));

	if (!source || fd < 0) {
		perror("echo_server");
		exit(3);
	}
	source->kind = kind;
	source->fd = fd;
	watch(source, EPOLL_CTL_ADD, EPOLLIN);
	return source;
}

static void forget(struct source *source)
{
	*source->place = source->next;
	if (source->next)
		source->next->place = source->place;
	close(source->fd);
	free(source);
}

static int open_at(int type, uint16_t port)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, type | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) || (type == SOCK_STREAM && listen(fd, BACKLOG))) {
		perror("echo_server");
		exit(3);
	}
	return fd;
}

/* Move what there is. Return false when the connection has ended. */
static bool move(struct source *source)
{
	ssize_t size;

	for (;;) {
		while (source->begin < source->end) {
			size = send(source->fd, source->data + source->begin, source->end - source->begin, MSG_NOSIGNAL);
			if (size < 0)
				return errno == EAGAIN;
			source->begin += (size_t)size;
		}
		if (source->peer_closed)
			return false;
		size = recv(source->fd, source->data, BUFFER_BYTES, 0);
		if (size < 0)
			return errno == EAGAIN;
		source->peer_closed = size == 0;
		source->begin = 0;
		source->end = (size_t)size;
	}
}

static void serve_connection(struct source *source)
{
	if (move(source))
		watch(source, EPOLL_CTL_MOD, source->begin < source->end ? EPOLLOUT : EPOLLIN);
	else
		forget(source);
}

static void take(const struct source *listener)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK);
	struct source *source;

	if (fd < 0)
		return;
	if (listener->kind == FAREWELL) {
		send(fd, "bye", 3, MSG_NOSIGNAL);
		close(fd);
		return;
	}
	source = add(CONNECTION, fd);
	source->next = connections;
	source->place = &connections;
	if (connections)
		connections->place = &source->next;
	connections = source;
}

static void answer_datagram(const struct source *source)
{
	static char data[BUFFER_BYTES];
	struct sockaddr_in6 from;
	socklen_t from_bytes = sizeof(from);
	ssize_t size = recvfrom(source->fd, data, sizeof(data), 0, (struct sockaddr *)&from, &from_bytes);

	if (size >= 0)
		sendto(source->fd, data, (size_t)size, 0, (struct sockaddr *)&from, from_bytes);
}

int main(int argc, char **argv)
{
	const uint16_t port = argc == 2 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;
	struct source *own[4];
	bool ends = false;
	sigset_t set;

	if (!port)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	epoll_fd = epoll_create1(0);
	own[0] = add(ECHO, open_at(SOCK_STREAM, port));
	own[1] = add(FAREWELL, open_at(SOCK_STREAM, port + 1));
	own[2] = add(DATAGRAMS, open_at(SOCK_DGRAM, port));
	own[3] = add(SIGNALS, signalfd(-1, &set, 0));
	puts("ready");
	fflush(stdout);
	while (!ends) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++) {
			struct source *source = events[i].data.ptr;

			if (source->kind == CONNECTION)
				serve_connection(source);
			else if (source->kind == DATAGRAMS)
				answer_datagram(source);
			else if (source->kind == SIGNALS)
				ends = true;
			else
				take(source);
		}
	}
	while (connections)
		forget(connections);
	for (int i = 0; i < 4; i++) {
		close(own[i]->fd);
		free(own[i]);
	}
	close(epoll_fd);
	return 0;
}
