/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port layer: every call of an operating system that bw-traffic makes. port_linux*.c and port_win32*.c implement
 * it; no other file has an #ifdef of an operating system. Functions return 0 (or a count) or -errno, with the errno
 * names of C on every system, and never print or exit.
 *
 * Time is int64 nanoseconds. TAI is read through struct port_tai, because a kernel may not know TAI - UTC.
 */
#ifndef BW_PORT_H
#define BW_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

/* ---- clocks ---------------------------------------------------------------------------------------------------- */

enum port_clock {
	PORT_CLOCK_REALTIME,  /* UTC, may be stepped */
	PORT_CLOCK_MONOTONIC, /* never stepped; on Linux slewed together with REALTIME; epoch undefined */
};

enum { TAI_UTC_DEFAULT_S = 37 }; /* TAI - UTC since 2017 */

/* How this process reads TAI: the kernel's CLOCK_TAI, or UTC + a constant where the kernel's TAI - UTC is 0. */
struct port_tai {
	int kernel_tai_utc_s; /* what the kernel says; 0: not set, or a system without TAI */
	int tai_utc_s;        /* what is used: the kernel's, or else the fallback */
	int64_t add_ns;       /* internal: added to the clock that is read */
};

int64_t port_clock_now_ns(enum port_clock clock);

/** Find out how to read TAI. @param fallback_tai_utc_s  TAI - UTC in seconds where the kernel says 0 */
void port_tai_init(struct port_tai *tai, int fallback_tai_utc_s);
/** Current TAI. Safe in real-time threads: no system call on Linux. */
int64_t port_tai_now_ns(const struct port_tai *tai);
/** Convert a stamp of the kernel (CLOCK_REALTIME) to TAI. */
int64_t port_tai_from_realtime_ns(const struct port_tai *tai, int64_t realtime_ns);

/**
 * Sleep until an instant; return at once if it has passed. A step of the clock is followed.
 *
 * @return 0, or -EINTR when a signal came first
 */
int port_clock_sleep_until_ns(enum port_clock clock, int64_t deadline_ns);
/** Draw 64 random bits that nobody can guess. @return 0 or -errno */
int port_random(uint64_t *bits);
/** Draw a seed of 63 random bits. @return 0 or -errno */
int port_seed_draw(int64_t *seed);
/** Sleep for a while. @return 0 or -EINTR */
int port_sleep_ns(int64_t duration_ns);

/** Smallest change of TAI - MONOTONIC between two readings, in ns, that is a step and not the way in which they are read. */
int64_t port_clock_step_floor_ns(void);
/** True where both clocks are slewed together, so that TAI - MONOTONIC is constant between steps. */
bool port_clocks_slew_together(void);

/* ---- sockets --------------------------------------------------------------------------------------------------- */

typedef intptr_t port_socket;
#define PORT_SOCKET_NONE ((port_socket)-1)

/* One piece of a message to be written. */
struct port_slice {
	const void *data;
	size_t size_bytes;
};

/* What came with received bytes. */
struct port_received {
	bool unstamped;            /* set by the caller, of datagrams only: no stamps are wanted, a cheaper call */
	struct address source;     /* datagrams only */
	bool truncated;            /* the datagram was longer than the buffer */
	int64_t stamp_realtime_ns; /* kernel receive stamp of the last byte (CLOCK_REALTIME); 0: none */
	int64_t stamp_monotonic_ns; /* the same of PORT_CLOCK_MONOTONIC, where that is port_stamp_clock() */
};

/* A kernel transmit stamp: on Linux from the error queue. */
struct port_transmitted {
	uint32_t key;              /* datagrams: their number from 0; TCP: offset of the last byte from 0; modulo 2^32 */
	int64_t stamp_realtime_ns, stamp_monotonic_ns; /* one of them, the other is 0 */
};

/** Prepare the process: network library, binary stdout, broken pipes and files beyond a limit of their size as errors. Call once. @return 0 or -errno */
int port_init(void);

/** Open a non-blocking UDP socket bound to an address (port 0: any). @return 0 or -errno */
int port_udp_open(const struct address *local, port_socket *socket_out);
/** Fix the peer of a UDP socket: it is sent to by default, and only its datagrams are received. */
int port_udp_connect(port_socket sock, const struct address *peer);
/** Open a non-blocking listening socket (address reuse on). */
int port_tcp_listen(const struct address *local, int backlog, port_socket *socket_out);
/** Accept one connection, non-blocking. @return 0, -EAGAIN when there is none, or -errno */
int port_tcp_accept(port_socket listener, port_socket *socket_out, struct address *source);
/**
 * Begin a connection, non-blocking.
 *
 * @return 0 when it is up already, -EINPROGRESS when it is under way (poll for PORT_POLL_OUT, then ask
 *         port_tcp_connect_result), or -errno (no socket is left open)
 */
int port_tcp_connect(const struct address *local, const struct address *peer, port_socket *socket_out);
/** @return 0 the connection is up, or the -errno that it failed with */
int port_tcp_connect_result(port_socket sock);
/** Refuse further input and let the owner of the socket read to its end. */
void port_tcp_shutdown_input(port_socket sock);
void port_socket_close(port_socket sock);
/** Close a connection at once with a reset, without TIME_WAIT. */
void port_socket_abort(port_socket sock);
/** Local address of a socket (the port that the system has chosen). @return 0 or -errno */
int port_socket_local(port_socket sock, struct address *local);

int port_socket_set_nodelay(port_socket sock);
/** Let small writes wait until what was written before is acknowledged (RFC 896), as sockets do by default. @return 0 or -errno */
int port_socket_set_nagle(port_socket sock);
/** Mark outgoing packets. @param dscp  6 bits; expedited forwarding is 46 (RFC 3246) */
int port_socket_set_dscp(port_socket sock, unsigned int dscp);
/** Ask for a receive buffer; systems may give less. @return 0 or -errno */
int port_socket_set_receive_buffer(port_socket sock, int size_bytes);
/**
 * Let the socket's card be polled by who waits for it, rather than by interrupts, for so long at a time.
 *
 * @return 0; -ENOTSUP: the system cannot, or not permitted
 */
int port_socket_set_busy_poll(port_socket sock, int busy_poll_us);

/** Ask the kernel to stamp what is received. @return 0, or -ENOTSUP */
int port_socket_stamp_receive(port_socket sock);
/** Let port_send ask for transmit stamps. Keys count from this call. @return 0, or -ENOTSUP */
int port_socket_stamp_transmit(port_socket sock);

/** Both of a UDP socket, of one thread. @return 0, or -ENOTSUP */
int port_socket_stamp_both(port_socket sock);
/**
 * Which clock the kernel stamps by: PORT_CLOCK_REALTIME on Linux, PORT_CLOCK_MONOTONIC (the performance counter) on Windows.
 *
 * @param step_ns  receives by how much stamps of it may be cut off
 */
enum port_clock port_stamp_clock(int64_t *step_ns);

/**
 * Write what fits, without blocking.
 *
 * @param slices         written in order
 * @param count          1..PORT_SLICES_MAX
 * @param want_transmit  ask for a stamp of the last byte (after port_socket_stamp_transmit)
 * @return bytes written, -EAGAIN when nothing fits, or -errno
 */
enum { PORT_SLICES_MAX = 2 };
int64_t port_send(port_socket sock, const struct port_slice *slices, int count, bool want_transmit);
/**
 * Send one datagram to an address.
 *
 * @param want_transmit  ask for a stamp of it (after port_socket_stamp_both)
 * @return its bytes, or -errno
 */
int64_t port_send_to(port_socket sock, const void *data, size_t size_bytes, const struct address *peer, bool want_transmit);
/**
 * Read what is there, without blocking.
 *
 * @param received  what came along; may be NULL (a cheaper call, neither source nor stamps)
 * @return bytes (0: the peer has closed; of a datagram, an empty one), -EAGAIN when nothing is there, or -errno
 */
int64_t port_recv(port_socket sock, void *data, size_t size_bytes, struct port_received *received);
/** Wait until one socket can be read. @return 0, -ETIMEDOUT, -EINTR, or -errno */
int port_socket_wait_readable(port_socket sock, int64_t timeout_ns);
/** Read one transmit stamp. @return 0, -EAGAIN when there is none, or -errno */
int port_recv_transmitted(port_socket sock, struct port_transmitted *transmitted);

/* ---- waiting for sockets --------------------------------------------------------------------------------------- */

enum { PORT_POLL_IN = 1, PORT_POLL_OUT = 2, PORT_POLL_ERROR = 4 };

struct port_poller; /* opaque; sockets may be added by other threads than the one that waits */

struct port_event {
	void *user;
	unsigned int events; /* PORT_POLL_… */
};

/** @param capacity  sockets at most */
int port_poller_create(int capacity, struct port_poller **poller_out);
/** Let a wait poll the cards of its sockets for so long first. @return 0; -ENOTSUP: the system cannot (Linux 6.9 can) */
int port_poller_set_busy_poll(struct port_poller *poller, int busy_poll_us);
void port_poller_destroy(struct port_poller *poller);
/** Watch a socket, level-triggered. Errors and hang-ups are always reported. @return 0, -ENOSPC, or -errno */
int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user);
/** Stop watching. Call before the socket is closed. */
int port_poller_remove(struct port_poller *poller, port_socket sock);
/**
 * Wait for events.
 *
 * @param timeout_ns  0: only look; negative: for ever
 * @return number of events, 0 on timeout or signal, or -errno
 */
int port_poller_wait(struct port_poller *poller, struct port_event *events, int capacity, int64_t timeout_ns);

/* ---- threads --------------------------------------------------------------------------------------------------- */

enum { PORT_NOTE_BYTES = 128, PORT_CPU_ANY = -1, PORT_PRIORITY_IDLE = -1 };

/* What a thread was given, for the "scheduling" object of the results. */
struct port_scheduling {
	bool fifo;                  /* SCHED_FIFO (Windows: the real-time class, or time-critical) */
	bool idle;                  /* it runs when no other thread wants the CPU */
	int priority;               /* 1..99; 0 when not fifo */
	int cpu;                    /* CPU that it is pinned to, or PORT_CPU_ANY */
	char note[PORT_NOTE_BYTES]; /* what was refused and why; empty: nothing */
};

struct port_thread; /* opaque */

/**
 * Start a thread. Priority and CPU are asked for by the thread itself before run() begins; what is refused is noted in
 * scheduling and the thread runs without it. Only a thread that is refused PORT_PRIORITY_IDLE does not run at all: it would
 * take the CPU from others.
 *
 * @param name      at most 15 characters
 * @param priority  SCHED_FIFO 1..99; 0: do not ask; PORT_PRIORITY_IDLE: run when no other thread wants the CPU
 * @param cpu       or PORT_CPU_ANY
 * @return 0 or -errno
 */
int port_thread_start(const char *name, int priority, int cpu, void (*run)(void *), void *argument,
		      struct port_thread **thread_out);
/** Wait for its end and free it. A thread of the idle class leaves that first: on a busy CPU it would come to no end. */
void port_thread_join(struct port_thread *thread);
/** Valid from the return of port_thread_start until the join. */
const struct port_scheduling *port_thread_scheduling(const struct port_thread *thread);
/** Let the calling thread run on these CPUs only. @return 0 or -errno */
int port_thread_set_cpus(const int *cpus, int count);
/** Let another thread of the same priority run. */
void port_thread_yield(void);
/** CPU time of the calling thread so far. */
int64_t port_thread_cpu_ns(void);
/**
 * Read the CPU time so far of a thread of this process that is not joined yet. Safe in real-time threads.
 *
 * @return 0, -ESRCH when it has ended, or -ENOTSUP
 */
int port_thread_ran_ns(const struct port_thread *thread, int64_t *cpu_ns);

struct port_thread_time; /* opaque: CPU time of a thread of any process */

/** @param tid  the system's number of the thread. @return 0, -ESRCH: there is none, -ENOTSUP, or -errno */
int port_thread_time_open(int64_t tid, struct port_thread_time **time_out);
void port_thread_time_close(struct port_thread_time *time);
/**
 * Read the CPU time of the thread so far. Safe in real-time threads. Of one that runs at this moment, on Linux: until its CPU
 * last changed threads, or the last tick of the scheduler.
 *
 * @return 0, or -ESRCH when the thread has ended
 */
int port_thread_time_read(const struct port_thread_time *time, int64_t *cpu_ns);

struct port_cpu_account; /* opaque: CPU time of a group of processes, CPU by CPU */

/** @param path  on Linux `cpuacct.usage_percpu` of a control group. @return 0, -ENOTSUP, or -errno */
int port_cpu_account_open(const char *path, struct port_cpu_account **account_out);
void port_cpu_account_close(struct port_cpu_account *account);
/**
 * Read what the group has run on a CPU so far, whole as of threads that do not run at this moment. Safe in real-time threads.
 *
 * @return 0, or -ENOENT when there is no such group any more, or no such CPU
 */
int port_cpu_account_read(const struct port_cpu_account *account, int cpu, int64_t *cpu_ns);

/** Lock present and future memory. @return 0 or -errno */
int port_memory_lock(void);
/**
 * Keep all CPUs of the machine from sleeping while they are idle, until the process ends: they wake up at once, and burn
 * power. @return 0 or -errno, -ENOTSUP where a system has no such request
 */
int port_cpus_keep_awake(void);

/** Number of CPUs that this process may use. */
int port_cpu_count(void);
/** The index-th CPU that this process may use, 0 <= index < port_cpu_count(). */
int port_cpu_at(int index);
/** Time stolen from a CPU by the hypervisor since boot. @return 0, or -ENOTSUP */
int port_cpu_steal_ns(int cpu, int64_t *steal_ns);
/**
 * Read the time of interrupts on a CPU since boot, to a clock tick, where the system counts it apart from the threads that
 * they interrupt. Safe in real-time threads.
 *
 * @return 0, or -ENOTSUP: it is part of those threads' time
 */
int port_cpu_interrupts_ns(int cpu, int64_t *interrupts_ns);

/* ---- process --------------------------------------------------------------------------------------------------- */

/** From now on SIGINT and SIGTERM only set a flag (on Windows Ctrl-C, Ctrl-Break and the named event that bw-job sets). */
void port_stop_install(void);
bool port_stop_requested(void);

/** Resident memory of this process in bytes, or 0 where it cannot be told. */
uint64_t port_rss_bytes(void);

/** Create a directory if it is not there. @return 0 or -errno */
int port_directory_create(const char *path);

#endif
