/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of TCP whose every byte is known, and what became of it: an ordinary program, which knows of no stack but that of its
 * system.
 *
 *     stream sink ADDRESS PORT              accept one, compare all of it: {"bytes", "wrong", "seconds"}
 *     stream source ADDRESS PORT BYTES [SECONDS]    send it, no longer than that
 *     stream reader ADDRESS PORT SIZE       accept one of messages of that size: {"ways_ns": [one way of each]}
 *     stream writer ADDRESS PORT SIZE COUNT INTERVAL_US
 *     stream echo ADDRESS PORT SIZE         send each message back
 *     stream asker ADDRESS PORT SIZE COUNT INTERVAL_US     {"trips_ns": [round trip of each]}
 *
 * The one that accepts says `ready`. Times are CLOCK_MONOTONIC, which is one for both ends: they are on one machine.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_WORDS = 32768, NS_PER_US = 1000 };

#define NS_PER_S INT64_C(1000000000)

static int64_t now_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_until_ns(int64_t at_monotonic_ns)
{
	struct timespec at = { at_monotonic_ns / NS_PER_S, at_monotonic_ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static socklen_t address_of(char **argv, struct sockaddr_storage *address)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
	struct sockaddr_in *four = (struct sockaddr_in *)address;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET6, argv[2], &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)atoi(argv[3]));
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = htons((uint16_t)atoi(argv[3]));
	if (inet_pton(AF_INET, argv[2], &four->sin_addr) != 1)
		fail(argv[2]);
	return sizeof(*four);
}

static int accept_one(char **argv)
{
	struct sockaddr_storage address;
	socklen_t length = address_of(argv, &address);
	int on = 1, listener = socket(address.ss_family, SOCK_STREAM, 0), fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1))
		fail("listen");
	printf("ready\n");
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		fail("accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static int connect_to(char **argv)
{
	struct sockaddr_storage address;
	socklen_t length = address_of(argv, &address);
	int on = 1, fd = socket(address.ss_family, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&address, length))
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static uint64_t word(uint64_t place)
{
	return (place ^ place >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

static void sink(int fd)
{
	static uint64_t piece[PIECE_WORDS];
	uint64_t place = 0, wrong = 0, bytes = 0;
	int64_t began_monotonic_ns = 0;
	size_t had = 0;

	for (;;) {
		ssize_t size = read(fd, (char *)piece + had, sizeof(piece) - had);

		if (size < 0)
			fail("read");
		if (!began_monotonic_ns)
			began_monotonic_ns = now_monotonic_ns();
		if (size == 0)
			break;
		bytes += (uint64_t)size;
		had += (size_t)size;
		for (size_t i = 0; i < had / sizeof(*piece); i++)
			wrong += piece[i] != word(place++);
		memmove(piece, (char *)piece + had / sizeof(*piece) * sizeof(*piece), had % sizeof(*piece));
		had %= sizeof(*piece);
	}
	printf("{\"bytes\":%llu,\"wrong\":%llu,\"seconds\":%.6f}\n", (unsigned long long)bytes, (unsigned long long)(wrong + (had != 0)),
	       (double)(now_monotonic_ns() - began_monotonic_ns) / NS_PER_S);
}

static void write_all(int fd, const void *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t written = write(fd, (const char *)data + at, size - at);

		if (written < 0)
			fail("write");
		at += (size_t)written;
	}
}

static int read_all(int fd, void *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t got = read(fd, (char *)data + at, size - at);

		if (got < 0)
			fail("read");
		if (got == 0)
			return 0;
		at += (size_t)got;
	}
	return 1;
}

static void source(int fd, uint64_t bytes, double limit_s)
{
	const int64_t began_monotonic_ns = now_monotonic_ns();
	static uint64_t piece[PIECE_WORDS];
	uint64_t place = 0, words = bytes / sizeof(*piece);

	while (place < words && (double)(now_monotonic_ns() - began_monotonic_ns) < limit_s * NS_PER_S) {
		size_t count = words - place < PIECE_WORDS ? (size_t)(words - place) : PIECE_WORDS;

		for (size_t i = 0; i < count; i++)
			piece[i] = word(place++);
		write_all(fd, piece, count * sizeof(*piece));
	}
}

static void reader(int fd, size_t size)
{
	char *message = calloc(1, size);
	const char *between = "{\"ways_ns\":[";
	int64_t sent_monotonic_ns;

	while (read_all(fd, message, size)) {
		memcpy(&sent_monotonic_ns, message, sizeof(sent_monotonic_ns));
		printf("%s%lld", between, (long long)(now_monotonic_ns() - sent_monotonic_ns));
		between = ",";
	}
	printf("]}\n");
}

static void echo(int fd, size_t size)
{
	char *message = calloc(1, size);

	while (read_all(fd, message, size))
		write_all(fd, message, size);
}

static void writer(int fd, size_t size, long count, int64_t interval_us, int asks)
{
	char *message = calloc(1, size);
	int64_t at_monotonic_ns = now_monotonic_ns();

	for (long i = 0; i < count; i++, at_monotonic_ns += interval_us * NS_PER_US) {
		int64_t sent_monotonic_ns;

		sleep_until_ns(at_monotonic_ns);
		sent_monotonic_ns = now_monotonic_ns();
		memcpy(message, &sent_monotonic_ns, sizeof(sent_monotonic_ns));
		write_all(fd, message, size);
		if (asks && read_all(fd, message, size))
			printf("%s%lld", i ? "," : "{\"trips_ns\":[", (long long)(now_monotonic_ns() - sent_monotonic_ns));
	}
	if (asks)
		printf("]}\n");
}

int main(int argc, char **argv)
{
	const char *role = argc > 3 ? argv[1] : "";
	size_t size = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;

	if (!strcmp(role, "sink") && argc == 4)
		sink(accept_one(argv));
	else if (!strcmp(role, "source") && (argc == 5 || argc == 6))
		source(connect_to(argv), size, argc == 6 ? atof(argv[5]) : 1e6);
	else if (!strcmp(role, "reader") && argc == 5 && size >= sizeof(int64_t))
		reader(accept_one(argv), size);
	else if (!strcmp(role, "echo") && argc == 5 && size >= sizeof(int64_t))
		echo(accept_one(argv), size);
	else if ((!strcmp(role, "writer") || !strcmp(role, "asker")) && argc == 7 && size >= sizeof(int64_t))
		writer(connect_to(argv), size, atol(argv[5]), atoll(argv[6]), role[0] == 'a');
	else
		return 2;
	return 0;
}
