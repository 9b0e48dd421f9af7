/* SPDX-License-Identifier: Apache-2.0 */
#include "port_wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/time_units.h"
#include "port_children.h"
#include "port_clocks.h"
#include "port_engine.h"
#include "port_libc.h"
#include "port_private.h"
#include "port_signals.h"

enum {
	ENGINE_FDS = 4,         /* the thread's event, packets, service, children */
	FDS_ON_STACK = 64,
	HELPER_LOOKS_US = 1000, /* how often the helper looks while threads come and go */
	VACANT_US = 2000,       /* so long after one left, and none waited */
	TURNS = 16,             /* so often packets go before a look at the kernel's descriptors */
	BUSY_TURNS = 32,        /* of busy polling, between two looks at the time and at who else wants the lock */
};

struct waiter {
	struct waiter *next;
	bool (*done)(void *argument); /* NULL: the helper's */
	void *argument;
	int event;
	bool woken;
	uint64_t sleeps_until_us; /* 0: it does not sleep */
	void (*abandon)(void *argument);
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t event_key;
static __thread sigset_t mask_before;
static __thread int cancellable_before; /* who holds the lock is not to be cancelled, who sleeps may be */
static struct waiter *driver, *waiters; /* the driver is not among the waiters */
static struct waiter helper = { .event = -1 };
static uint64_t driven_us, vacant_us; /* when a driver left; the same, and nobody waited */
static bool changed;

static void close_event(void *event)
{
	libc_calls()->close((int)(intptr_t)event - 1);
}

static void before_fork(void)
{
	wait_lock();
	children_before_fork();
}

static void after_fork(void)
{
	children_after_fork();
	wait_unlock();
}

static void make_lock(void)
{
	pthread_mutexattr_t attributes;

	/* A thread of low priority that holds the lock is not to be kept from the processor by one in between. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static void in_child(void)
{
	intptr_t event = (intptr_t)pthread_getspecific(event_key);

	if (event) { /* the parent's thread is woken by it */
		close_event((void *)event);
		pthread_setspecific(event_key, NULL);
	}
	driver = waiters = NULL;
	helper = (struct waiter){ .event = -1 };
	changed = false;
	children_in_child();
	engine_forked();
	make_lock();
	pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
	pthread_setcancelstate(cancellable_before, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	make_lock();
	pthread_key_create(&event_key, close_event);
	pthread_atfork(before_fork, after_fork, in_child);
}

void wait_lock(void)
{
	sigset_t all, before;
	int cancellable;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
	pthread_mutex_lock(&lock);
	mask_before = before;
	cancellable_before = cancellable;
	engine_advance(); /* what is sent now counts its round trip from now */
}

void wait_changed(void)
{
	changed = true;
}

static void wake(struct waiter *waiter)
{
	const uint64_t one = 1;

	if (waiter->woken || waiter->event < 0)
		return;
	waiter->woken = true;
	if (libc_calls()->write(waiter->event, &one, sizeof(one)) < 0) {
		/* It is at its limit: the thread is as good as woken. */
	}
}

static bool is_over(const struct waiter *waiter)
{
	return waiter->done && waiter->done(waiter->argument);
}

/* Wake threads whose wait is over, a driver that would sleep past a timer, and the helper if nobody else will look. */
static void wake_others(void)
{
	if (changed) {
		changed = false;
		for (struct waiter *each = waiters; each; each = each->next) {
			if (is_over(each))
				wake(each);
		}
		if (driver && is_over(driver))
			wake(driver);
	}
	if (driver && engine_next_us() < driver->sleeps_until_us)
		wake(driver);
	if (!driver && !waiters && helper.sleeps_until_us > clocks_now_us() + HELPER_LOOKS_US)
		wake(&helper);
}

/* Let others have the lock; signals stay as they are. */
static void release(void)
{
	engine_flush();
	wake_others();
	pthread_mutex_unlock(&lock);
}

void wait_unlock(void)
{
	const sigset_t before = mask_before;

	release();
	pthread_setcancelstate(cancellable_before, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* An event of this thread's own, which wakes it; or -ENOMEM. */
static int event_of_thread(void)
{
	intptr_t kept = (intptr_t)pthread_getspecific(event_key);
	int event;

	if (kept)
		return (int)kept - 1;
	event = private_move(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (event < 0)
		return -ENOMEM;
	pthread_setspecific(event_key, (void *)(intptr_t)(event + 1));
	return event;
}

static struct timespec to_timespec(uint64_t us)
{
	uint64_t s = us / US_PER_S; /* more than seconds have room for where they have 32 bits: looked at again after 68 years */

	return (struct timespec){ .tv_sec = (time_t)(s < INT32_MAX ? s : INT32_MAX), .tv_nsec = (long)(us % US_PER_S * NS_PER_US) };
}

static void leave(struct waiter *own)
{
	if (driver == own) {
		driver = NULL;
		driven_us = clocks_now_us();
		if (!waiters)
			vacant_us = driven_us;
		return;
	}
	for (struct waiter **each = &waiters; *each; each = &(*each)->next) {
		if (*each == own) {
			*each = own->next;
			return;
		}
	}
}

/* The thread is cancelled in its sleep: nobody is to wake it, and another has to drive. */
static void cancelled(void *waiter)
{
	struct waiter *own = waiter;

	pthread_mutex_lock(&lock);
	leave(own);
	if (own->abandon)
		own->abandon(own->argument);
	if (!driver && waiters)
		wake(waiters);
	release();
	pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

/* Sleep without the lock. Return as ppoll(2) does, or -errno. */
static int sleep_cancellable(struct waiter *own, struct pollfd *fds, nfds_t count, const struct timespec *left, const sigset_t *mask)
{
	int ready;

	pthread_cleanup_push(cancelled, own);
	pthread_setcancelstate(cancellable_before, NULL);
	ready = libc_calls()->ppoll(fds, count, left, mask);
	if (ready < 0)
		ready = -errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return ready;
}

/*
 * Sleep until a descriptor has something, this thread is woken, or an instant. The lock is let go meanwhile. `fds` has room for the
 * engine's behind the caller's `count`. Return how many of the caller's have something, or -errno.
 */
static int sleep_until(struct waiter *own, struct pollfd *fds, nfds_t count, uint64_t until_us, const sigset_t *mask)
{
	struct pollfd *engines = fds + count;
	const sigset_t before = mask_before; /* a handler may come here, too, with signals of its own blocked */
	bool drives = driver == own;
	uint64_t now_us = clocks_now_us(), drained;
	struct timespec left = to_timespec(until_us > now_us ? until_us - now_us : 0);
	int ready;

	engines[0] = (struct pollfd){ .fd = own->event, .events = POLLIN };
	engines[1] = (struct pollfd){ .fd = drives ? engine_packets_fd() : -1, .events = POLLIN };
	engines[2] = (struct pollfd){ .fd = drives ? engine_service_fd() : -1, .events = POLLIN };
	engines[3] = (struct pollfd){ .fd = drives && engine_runs() ? children_fd() : -1, .events = POLLIN };
	own->sleeps_until_us = until_us;
	release();
	ready = sleep_cancellable(own, fds, count + ENGINE_FDS, until_us == UINT64_MAX ? NULL : &left, mask ? mask : &before);
	pthread_mutex_lock(&lock);
	mask_before = before;
	own->sleeps_until_us = 0;
	if (ready < 0)
		return ready;
	for (int i = 0; i < ENGINE_FDS; i++)
		ready -= engines[i].revents != 0;
	if (engines[0].revents && libc_calls()->read(own->event, &drained, sizeof(drained)) < 0) {
		/* Another look has emptied it. */
	}
	own->woken = false;
	if (engines[2].revents)
		engine_hear_service();
	return ready;
}

/* Look for packets without sleeping, for so long. Return whether the wait is over. */
static bool poll_busily(const struct wait *wait)
{
	uint64_t until_us = clocks_now_us() + engine_busy_poll_us();

	if (until_us > wait->until_us)
		until_us = wait->until_us;
	for (int i = 0; !wait->done(wait->argument); i++) {
		if (i % BUSY_TURNS == 0) {
			if (clocks_now_us() >= until_us)
				return false;
			release();
			pthread_mutex_lock(&lock);
		}
		engine_turn();
	}
	return true;
}

/* Take the driver's place if it is free, or the helper's: this thread is woken by the card itself then. */
static void find_place(struct waiter *own)
{
	struct waiter **each = &waiters;

	if (!driver || driver == &helper) {
		if (driver)
			wake(driver);
		driver = own;
		return;
	}
	while (*each)
		each = &(*each)->next;
	own->next = NULL;
	*each = own;
}

/* Let others have the lock between two turns, and wake whose wait the last one has ended; nobody need look meanwhile. */
static void let_others(struct waiter *own)
{
	if (!driver)
		driver = own;
	release();
	pthread_mutex_lock(&lock);
	if (driver == own)
		driver = NULL;
}

/* Wait with room for the engine's descriptors in `fds`. */
static int wait_with(const struct wait *wait, struct waiter *own, struct pollfd *fds)
{
	unsigned int interruptions = signals_interruptions(), turns = 0; /* handlers run in its sleep alone */
	int ready = 0;

	for (;;) {
		uint64_t next_us, until_us = wait->until_us;
		bool more = engine_turn();

		if (wait->done(wait->argument) || (engine_busy_poll_us() && poll_busily(wait)))
			return 0;
		if (ready)
			return ready;
		if (clocks_now_us() >= until_us)
			return -ETIMEDOUT;
		if (more && turns++ < TURNS) {
			let_others(own);
			continue;
		}
		turns = 0;
		find_place(own);
		engine_flush();
		next_us = driver == own ? engine_next_us() : UINT64_MAX;
		ready = sleep_until(own, fds, wait->count, next_us < until_us ? next_us : until_us, wait->mask);
		leave(own);
		if (ready >= 0 && wait->done(wait->argument)) /* packets of others can wait */
			return 0;
		if (ready == -EINTR && wait->restarts && signals_interruptions() == interruptions)
			ready = 0;
		if (ready < 0)
			return ready;
	}
}

/* Look once. */
static int look(const struct wait *wait)
{
	const struct timespec none = { 0 };
	int ready = 0;

	while (engine_turn() && !wait->done(wait->argument)) {
		/* What is there now counts. */
	}
	if (wait->done(wait->argument))
		return 0;
	if (wait->count || wait->mask) /* signals that the mask lets through are heard, too */
		ready = libc_calls()->ppoll(wait->fds, wait->count, &none, wait->mask);
	return ready < 0 ? -errno : ready ? ready : -ETIMEDOUT;
}

int wait_until(const struct wait *wait)
{
	struct pollfd on_stack[FDS_ON_STACK], *fds = on_stack;
	struct waiter own = { .done = wait->done, .argument = wait->argument, .event = event_of_thread(),
			      .abandon = wait->abandon };
	int ready;

	if (!wait->until_us)
		return look(wait);
	if (own.event < 0)
		return -ENOMEM;
	if (wait->count + ENGINE_FDS > FDS_ON_STACK) {
		fds = malloc((wait->count + ENGINE_FDS) * sizeof(*fds));
		if (!fds)
			return -ENOMEM;
	}
	if (wait->count)
		memcpy(fds, wait->fds, wait->count * sizeof(*fds));
	ready = wait_with(wait, &own, fds);
	if (wait->count)
		memcpy(wait->fds, fds, wait->count * sizeof(*fds));
	if (fds != on_stack)
		free(fds);
	/* Somebody else has to drive now. */
	if (!driver && waiters)
		wake(waiters);
	return ready;
}

/* Take in what is there, unless a thread comes that does. */
static void take_all(void)
{
	while (engine_turn() && !driver)
		let_others(&helper);
}

/* Drive, or look at the time until it is needed. */
static void help_once(void)
{
	uint64_t now_us = clocks_now_us(), next_us = UINT64_MAX;
	struct pollfd fds[ENGINE_FDS];

	if (!driver && now_us - driven_us >= HELPER_LOOKS_US) {
		take_all();
		if (!driver)
			driver = &helper;
	}
	engine_flush();
	if (driver == &helper)
		next_us = engine_next_us();
	else if (!driver || now_us - vacant_us < VACANT_US)
		next_us = now_us + HELPER_LOOKS_US;
	sleep_until(&helper, fds, 0, next_us, NULL);
	if (driver == &helper) {
		driver = NULL;
		take_all();
	}
}

static void *help(void *unused)
{
	sigset_t all;

	(void)unused;
	sigfillset(&all);
	pthread_mutex_lock(&lock);
	mask_before = all;
	while (engine_runs())
		help_once();
	release();
	return NULL;
}

int wait_begin_helper(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int err;

	if (helper.event < 0)
		helper.event = private_move(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (helper.event < 0)
		return -ENOMEM;
	/* Of the priority of the thread that begins; signals are blocked here, and so in it. */
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attributes, help, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}
