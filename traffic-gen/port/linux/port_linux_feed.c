/* SPDX-License-Identifier: Apache-2.0 */
#include "port/port_feed.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#include "base/time_units.h"
#include "port/port_frequency.h"

#define STEP_NS INT64_C(128000000)
#define SHM_KEY 0x4e545030 /* "NTP0" */

enum { SHM_MODE_COUNTED = 1, PRECISION_LOG2_S = -20, TIME_CONSTANT_SHIFT = 4, TIME_CONSTANT_MAX = 10 };

/*
 * The segment of driver 28 of ntpd (ntp.org, "Shared Memory Driver"). Its seconds are a time_t of the reader: a long, on Debian's
 * systems of 64 bits and on armhf until bookworm.
 */
struct shm_time {
	int mode;
	volatile int count;
	long clock_s;
	int clock_us;
	long receive_s;
	int receive_us;
	int leap;
	int precision;
	int samples;
	volatile int valid;
	unsigned int clock_ns, receive_ns;
	int unused[8];
};

struct port_feed {
	enum port_feed_kind kind;
	struct frequency_clock clock;
	int64_t constant;     /* of the kernel's loop */
	struct shm_time *shm;
};

/* A loop that hears its clock every so many seconds: log2 of them, less 4 (RFC 5905, section 11.3). */
static int64_t constant_of(int64_t interval_ns)
{
	int64_t constant = -TIME_CONSTANT_SHIFT;

	for (int64_t interval_s = interval_ns / NS_PER_S; interval_s > 1; interval_s /= 2)
		constant++;
	return constant < 0 ? 0 : constant < TIME_CONSTANT_MAX ? constant : TIME_CONSTANT_MAX;
}

static int open_kernel(struct port_feed *feed, int64_t interval_ns)
{
	int err = frequency_open(&feed->clock, NULL);

	feed->constant = constant_of(interval_ns);
	return err ? err : frequency_loop_slew(0, feed->constant);
}

static int open_chrony(struct port_feed *feed, int unit)
{
	int id = shmget(SHM_KEY + unit, sizeof(*feed->shm), IPC_CREAT | 0600);
	void *address;

	if (id < 0)
		return -errno;
	address = shmat(id, NULL, 0);
	if ((intptr_t)address == -1)
		return -errno;
	feed->shm = address;
	feed->shm->valid = 0;
	feed->shm->mode = SHM_MODE_COUNTED;
	feed->shm->precision = PRECISION_LOG2_S;
	feed->shm->samples = 1;
	return 0;
}

int port_feed_open(enum port_feed_kind kind, int unit, int64_t interval_ns, struct port_feed **feed_out)
{
	struct port_feed *feed = calloc(1, sizeof(*feed));
	int err;

	if (!feed)
		return -ENOMEM;
	feed->kind = kind;
	feed->clock.fd = -1;
	err = kind == PORT_FEED_KERNEL ? open_kernel(feed, interval_ns) : open_chrony(feed, unit);
	if (err) {
		port_feed_close(feed);
		return err;
	}
	*feed_out = feed;
	return 0;
}

void port_feed_withdraw(struct port_feed *feed)
{
	if (feed->shm)
		feed->shm->valid = 0;
}

void port_feed_close(struct port_feed *feed)
{
	if (!feed)
		return;
	port_feed_withdraw(feed);
	if (feed->shm)
		shmdt(feed->shm);
	if (feed->kind == PORT_FEED_KERNEL)
		frequency_close(&feed->clock);
	free(feed);
}

/* Odd while it is written, as driver 28 has it in mode 1. */
static void put_shm(struct shm_time *shm, const struct port_feed_sample *sample)
{
	shm->valid = 0;
	shm->count++;
	atomic_thread_fence(memory_order_seq_cst);
	shm->clock_s = (long)(sample->utc_ns / NS_PER_S);
	shm->clock_ns = (unsigned int)(sample->utc_ns % NS_PER_S);
	shm->clock_us = (int)(shm->clock_ns / 1000);
	shm->receive_s = (long)(sample->realtime_ns / NS_PER_S);
	shm->receive_ns = (unsigned int)(sample->realtime_ns % NS_PER_S);
	shm->receive_us = (int)(shm->receive_ns / 1000);
	shm->leap = sample->leap;
	atomic_thread_fence(memory_order_seq_cst);
	shm->count++;
	shm->valid = 1;
}

int port_feed_take(struct port_feed *feed, const struct port_feed_sample *sample)
{
	int64_t correction_ns = sample->utc_ns - sample->realtime_ns;
	int err;

	if (sample->utc_ns < 0 || sample->realtime_ns < 0)
		return -ERANGE;
	if (feed->kind == PORT_FEED_CHRONY) {
		put_shm(feed->shm, sample);
		return 0;
	}
	if (correction_ns >= -STEP_NS && correction_ns <= STEP_NS)
		return frequency_loop_slew(correction_ns, feed->constant);
	err = frequency_clock_step(&feed->clock, correction_ns);
	return err ? err : frequency_loop_slew(0, feed->constant);
}
