/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_way - when sockperf hands over a message, and when it has it: a library for LD_PRELOAD
 *
 *   ONE_WAY_SENT=FILE LD_PRELOAD=one_way.so sockperf ping-pong ...
 *   ONE_WAY_RECEIVED=FILE LD_PRELOAD=one_way.so sockperf server ...
 *
 * FILE holds times in ns of CLOCK_REALTIME, 8 bytes each, by the message's number, as many as it has room for: of the calls of
 * sendto, or of the returns of recvfrom. Their difference is one way, taken where bw-traffic takes it. The file has to be there;
 * where it cannot be mapped the program ends with exit code 2.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

typedef ssize_t send_call(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
typedef ssize_t receive_call(int, void *, size_t, int, struct sockaddr *, socklen_t *);

static int64_t *times_realtime_ns;
static uint64_t room;
static int is_sender;
static send_call *next_sendto;
static receive_call *next_recvfrom;

static int64_t realtime_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Note a time under the number that sockperf writes into the first eight bytes of a message. */
static void note(const void *message, size_t length, int64_t now_realtime_ns) {
    uint64_t number;
    if (length < sizeof number)
        return;
    memcpy(&number, message, sizeof number);
    number = be64toh(number);
    if (number < room)
        times_realtime_ns[number] = now_realtime_ns;
}

__attribute__((constructor)) static void begin(void) {
    const char *sent = getenv("ONE_WAY_SENT"), *path = sent ? sent : getenv("ONE_WAY_RECEIVED");
    struct stat facts;
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    is_sender = sent != NULL;
    next_sendto = (send_call *)dlsym(RTLD_NEXT, "sendto");
    next_recvfrom = (receive_call *)dlsym(RTLD_NEXT, "recvfrom");
    if (file < 0 || fstat(file, &facts) != 0 || facts.st_size <= 0) {
        perror("one_way: ONE_WAY_SENT or ONE_WAY_RECEIVED");
        _Exit(2);
    }
    times_realtime_ns = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (times_realtime_ns == MAP_FAILED) {
        perror("one_way: mmap");
        _Exit(2);
    }
    room = (uint64_t)facts.st_size / sizeof *times_realtime_ns;
}

ssize_t sendto(int socket, const void *message, size_t length, int flags, const struct sockaddr *to, socklen_t to_length) {
    if (is_sender)
        note(message, length, realtime_now_ns());
    return next_sendto(socket, message, length, flags, to, to_length);
}

ssize_t recvfrom(int socket, void *message, size_t length, int flags, struct sockaddr *from, socklen_t *from_length) {
    ssize_t got = next_recvfrom(socket, message, length, flags, from, from_length);
    int64_t now_realtime_ns = realtime_now_ns();
    if (got > 0 && !is_sender)
        note(message, (size_t)got, now_realtime_ns);
    return got;
}
