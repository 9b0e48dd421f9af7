/* SPDX-License-Identifier: Apache-2.0 */
#include "port_epoll.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "descriptor_table.h"
#include "port_libc.h"
#include "port_parent.h"
#include "port_sockets.h"
#include "port_wait.h"

/* A socket, or another epoll, that an epoll watches. */
struct watch {
	struct epoll *epoll;
	struct open_socket *sock; /* NULL: `inner` */
	struct epoll *inner;
	int fd;
	struct epoll_event event;
	bool news, disarmed;          /* disarmed: by EPOLLONESHOT */
	struct watch *next_of_epoll;  /* all of an epoll */
	struct watch *next_of_object; /* all of a socket, or of an inner epoll */
	struct watch *next_news, **previous_news;
	struct watch *next_handed;    /* of those whose event is handed out, and of which the kernel may have one, too */
	int place;                    /* among the events */
};

struct epoll {
	unsigned int references; /* descriptors that mean it, and calls that wait in it */
	struct watch *watches, *of_outer; /* of_outer: in which others watch it */
	struct watch *first_news, **last_news;
	struct watch *handed;
	bool has_one_shots; /* some watch is, or was, by EPOLLONESHOT */
};

static struct descriptor_table epolls;

struct epoll *epoll_find(int fd)
{
	return descriptor_table_find(&epolls, fd);
}

int epoll_share(struct epoll *epoll, int fd)
{
	int err = descriptor_table_set(&epolls, fd, epoll);

	if (!err)
		epoll->references++;
	return err;
}

int epoll_next(int fd)
{
	return descriptor_table_next(&epolls, fd);
}

int epoll_add(int fd)
{
	struct epoll *epoll = calloc(1, sizeof(*epoll));
	int err = epoll ? 0 : -ENOMEM;

	if (!err) {
		epoll->last_news = &epoll->first_news;
		err = epoll_share(epoll, fd);
	}
	if (err)
		free(epoll);
	return err;
}

/* News. */

static short poll_events(const struct watch *watch)
{
	if (watch->inner)
		return epoll_has_news(watch->inner) ? POLLIN | POLLRDNORM : 0;
	return watch->sock->owner == OWNER_STACK ? sockets_ready(watch->sock) : 0;
}

static uint32_t wanted(const struct watch *watch)
{
	return (watch->event.events & ~(uint32_t)(EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)) | EPOLLERR | EPOLLHUP;
}

/* What the program is to hear of a watch now; EPOLLIN … have the numbers of POLLIN …. */
static uint32_t due(const struct watch *watch)
{
	return watch->disarmed ? 0 : (uint32_t)(unsigned short)poll_events(watch) & wanted(watch);
}

static void quiet(struct watch *watch)
{
	if (!watch->news)
		return;
	watch->news = false;
	*watch->previous_news = watch->next_news;
	if (watch->next_news)
		watch->next_news->previous_news = watch->previous_news;
	else
		watch->epoll->last_news = watch->previous_news;
}

static void tell_outer(struct epoll *epoll);

static void has_news(struct watch *watch)
{
	struct epoll *epoll = watch->epoll;

	if (watch->news || !due(watch))
		return;
	watch->news = true;
	watch->next_news = NULL;
	watch->previous_news = epoll->last_news;
	*epoll->last_news = watch;
	epoll->last_news = &watch->next_news;
	wait_changed();
	tell_outer(epoll);
}

/* Those that watch an epoll hear of it, too. */
static void tell_outer(struct epoll *epoll)
{
	for (struct watch *each = epoll->of_outer; each; each = each->next_of_object)
		has_news(each);
}

bool epoll_has_news(const struct epoll *epoll)
{
	for (const struct watch *each = epoll->first_news; each; each = each->next_news) {
		if (due(each))
			return true;
	}
	return false;
}

void epoll_socket_changed(struct open_socket *sock)
{
	const uint32_t news = (uint32_t)(unsigned short)sockets_news(sock);

	for (struct watch *each = sock->watches; each; each = each->next_of_object) {
		if (!(each->event.events & EPOLLET) || news & wanted(each))
			has_news(each);
	}
}

/* Watches. */

static struct watch **list_of_object(const struct watch *watch)
{
	return watch->sock ? &watch->sock->watches : &watch->inner->of_outer;
}

static void drop(struct watch *watch)
{
	struct watch **each = &watch->epoll->watches;

	quiet(watch);
	while (*each != watch)
		each = &(*each)->next_of_epoll;
	*each = watch->next_of_epoll;
	each = list_of_object(watch);
	while (*each != watch)
		each = &(*each)->next_of_object;
	*each = watch->next_of_object;
	free(watch);
}

static struct watch *find_watch(const struct epoll *epoll, int fd, const struct open_socket *sock, const struct epoll *inner)
{
	struct watch *each = epoll->watches;

	while (each && (each->fd != fd || each->sock != sock || each->inner != inner))
		each = each->next_of_epoll;
	return each;
}

/* Whether the kernel's epoll has a part in what is watched. */
static bool kernel_watches(const struct watch *watch)
{
	return watch->inner || sockets_kernel_takes_part(watch->sock);
}

static struct watch *add_watch(struct epoll *epoll, int fd, struct open_socket *sock, struct epoll *inner)
{
	struct watch *own = calloc(1, sizeof(*own)), **list;

	if (!own)
		return NULL;
	*own = (struct watch){ .epoll = epoll, .sock = sock, .inner = inner, .fd = fd, .next_of_epoll = epoll->watches };
	epoll->watches = own;
	list = list_of_object(own);
	own->next_of_object = *list;
	*list = own;
	return own;
}

/* Whether an epoll watches another, over any number of others. */
static bool reaches(const struct epoll *from, const struct epoll *to, int depth)
{
	enum { DEPTH_MAX = 5 }; /* as the kernel */

	if (from == to || depth > DEPTH_MAX)
		return true;
	for (const struct watch *each = from->watches; each; each = each->next_of_epoll) {
		if (each->inner && reaches(each->inner, to, depth + 1))
			return true;
	}
	return false;
}

/* EPOLLEXCLUSIVE is of a watch that is new and stays as it is, of a socket alone, with few others. */
static bool exclusive_fits(int operation, const struct watch *watch, const struct epoll *inner, uint32_t events)
{
	const uint32_t others = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;

	if (operation == EPOLL_CTL_MOD)
		return !((events | watch->event.events) & EPOLLEXCLUSIVE);
	return operation != EPOLL_CTL_ADD || !(events & EPOLLEXCLUSIVE) || (!inner && !(events & ~others));
}

int epoll_control(struct epoll *epoll, int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	struct open_socket *sock = sockets_find(fd);
	struct epoll *inner = sock ? NULL : epoll_find(fd);
	struct watch *watch;

	if (sock)
		parent_use(sock, event && event->events & ~(uint32_t)(EPOLLOUT | EPOLLWRNORM | EPOLLET | EPOLLONESHOT));
	if (!sock && !inner)
		return libc_calls()->epoll_ctl(epoll_fd, operation, fd, event) ? -errno : 0;
	watch = find_watch(epoll, fd, sock, inner);
	if (operation != EPOLL_CTL_ADD && operation != EPOLL_CTL_MOD && operation != EPOLL_CTL_DEL)
		return -EINVAL;
	if (operation == EPOLL_CTL_ADD ? watch != NULL : !watch)
		return operation == EPOLL_CTL_ADD ? -EEXIST : -ENOENT;
	if (operation != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	if (operation != EPOLL_CTL_DEL && !exclusive_fits(operation, watch, inner, event->events))
		return -EINVAL;
	if (inner && operation == EPOLL_CTL_ADD && reaches(inner, epoll, 1))
		return inner == epoll ? -EINVAL : -ELOOP;
	if ((!sock || sockets_kernel_takes_part(sock)) && libc_calls()->epoll_ctl(epoll_fd, operation, fd, event))
		return -errno;
	if (operation == EPOLL_CTL_DEL) {
		drop(watch);
		return 0;
	}
	if (!watch)
		watch = add_watch(epoll, fd, sock, inner);
	if (!watch)
		return -ENOMEM;
	watch->event = *event;
	watch->disarmed = false;
	epoll->has_one_shots |= (event->events & EPOLLONESHOT) != 0;
	quiet(watch);
	has_news(watch);
	return 0;
}

/* All descriptors that mean an epoll; any will do. */
static int descriptor_of(const struct epoll *epoll)
{
	int fd = -1;

	while ((fd = descriptor_table_next(&epolls, fd)) >= 0 && epoll_find(fd) != epoll)
		;
	return fd;
}

void epoll_socket_moved(struct open_socket *sock)
{
	for (struct watch *each = sock->watches; each; each = each->next_of_object) {
		if (!kernel_watches(each))
			libc_calls()->epoll_ctl(descriptor_of(each->epoll), EPOLL_CTL_DEL, each->fd, NULL);
		has_news(each);
	}
	/* Who sleeps in the kernel's epoll alone has to look again. */
	wait_changed();
}

void epoll_forget_descriptor(struct open_socket *sock, int fd)
{
	struct watch *next;

	/* While another descriptor means the socket the kernel goes on to watch it; here it ends with the one that was named. */
	for (struct watch *each = sock->watches; each; each = next) {
		next = each->next_of_object;
		if (each->fd == fd)
			drop(each);
	}
}

void epoll_forget_socket(struct open_socket *sock)
{
	while (sock->watches)
		drop(sock->watches);
}

static void release(void *argument)
{
	struct epoll *epoll = argument;
	struct watch *next;

	if (--epoll->references)
		return;
	for (struct watch *each = epoll->watches; each; each = next) {
		next = each->next_of_epoll;
		drop(each);
	}
	for (struct watch *each = epoll->of_outer; each; each = next) {
		next = each->next_of_object;
		drop(each);
	}
	free(epoll);
}

void epoll_forget(int fd)
{
	struct epoll *epoll = epoll_find(fd);

	if (!epoll)
		return;
	descriptor_table_set(&epolls, fd, NULL);
	release(epoll);
}

/* Waiting. */

static bool has_any(void *argument)
{
	return epoll_has_news(argument);
}

/* An EPOLLONESHOT is over. The kernel, where it has a part in what is watched, would say so once more. */
static void disarm(struct watch *watch, int epoll_fd)
{
	struct epoll_event nothing = { .events = EPOLLONESHOT, .data = watch->event.data };

	watch->disarmed = true;
	if (kernel_watches(watch))
		libc_calls()->epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watch->fd, &nothing);
}

/* Hand out what there is of the user-mode stack. */
static int take_news(struct epoll *epoll, int epoll_fd, struct epoll_event *events, int capacity)
{
	struct watch *each = epoll->first_news, **last = epoll->last_news;
	int count = 0;

	epoll->handed = NULL;
	while (each && count < capacity) {
		struct watch *next = &each->next_news == last ? NULL : each->next_news;
		uint32_t now = due(each);

		quiet(each);
		if (now) {
			if (kernel_watches(each)) {
				each->place = count;
				each->next_handed = epoll->handed;
				epoll->handed = each;
			}
			events[count].events = now;
			events[count++].data = each->event.data;
			if (each->event.events & EPOLLONESHOT)
				disarm(each, epoll_fd);
			else if (!(each->event.events & EPOLLET))
				has_news(each); /* behind the others: none starves */
		}
		each = next;
	}
	return count;
}

/* Whether an event of the kernel's is that of a watch which both stacks have: another one's data may be the same. */
static bool is_of(const struct watch *watch, const struct epoll_event *event)
{
	struct pollfd kernel = { .fd = watch->fd, .events = (short)wanted(watch) };
	const struct timespec none = { 0 };

	return watch->event.data.u64 == event->data.u64 && libc_calls()->ppoll(&kernel, 1, &none, NULL) > 0 &&
	       (uint32_t)(unsigned short)kernel.revents & event->events;
}

/* A descriptor may be watched in both: the events of the kernel's part join those of the stack's. */
static int join(struct epoll *epoll, struct epoll_event *events, int own, int of_kernel)
{
	int count = own;

	for (int i = own; i < own + of_kernel; i++) {
		struct watch **each = &epoll->handed;

		while (*each && !is_of(*each, &events[i]))
			each = &(*each)->next_handed;
		if (*each) {
			events[(*each)->place].events |= events[i].events;
			*each = (*each)->next_handed; /* another one is another watch's */
		} else {
			events[count++] = events[i];
		}
	}
	return count;
}

/* What is said once is said by one of the stacks. */
static void end_one_shots_of_kernel(const struct epoll *epoll, const struct epoll_event *event)
{
	for (struct watch *each = epoll->watches; each; each = each->next_of_epoll) {
		if (each->event.events & EPOLLONESHOT && !each->disarmed && each->sock && each->sock->owner == OWNER_STACK &&
		    kernel_watches(each) && is_of(each, event)) {
			each->disarmed = true;
			return;
		}
	}
}

static bool has_watches_in_stack(const struct epoll *epoll)
{
	for (const struct watch *each = epoll->watches; each; each = each->next_of_epoll) {
		if (each->inner || each->sock->owner == OWNER_STACK)
			return true;
	}
	return false;
}

/* Wait, in what a call holds: another thread may close the descriptor meanwhile, and the wait goes on without the kernel's part. */
static int wait_held(struct epoll *epoll, int epoll_fd, struct epoll_event *events, int capacity, uint64_t until_us, const sigset_t *mask)
{
	struct pollfd kernel = { .fd = epoll_fd, .events = POLLIN };
	struct wait wait = {
		.done = has_any, .abandon = release, .argument = epoll, .fds = &kernel, .count = 1, .until_us = until_us,
		.mask = until_us ? mask : NULL, /* who does not wait hears no signal, as in the kernel */
	};

	for (;;) {
		int ready = wait_until(&wait), own, of_kernel = 0;

		if (ready < 0)
			return ready == -ETIMEDOUT ? 0 : ready;
		if (epoll_find(epoll_fd) != epoll)
			kernel.fd = -1;
		own = take_news(epoll, kernel.fd, events, capacity);
		if (own < capacity && kernel.fd >= 0 && (ready > 0 || has_watches_in_stack(epoll)))
			of_kernel = libc_calls()->epoll_wait(epoll_fd, events + own, capacity - own, 0);
		for (int i = own; epoll->has_one_shots && i < own + of_kernel; i++)
			end_one_shots_of_kernel(epoll, &events[i]);
		own = join(epoll, events, own, of_kernel > 0 ? of_kernel : 0);
		if (own)
			return own;
	}
}

int epoll_wait_for(struct epoll *epoll, int epoll_fd, struct epoll_event *events, int capacity, uint64_t until_us, const sigset_t *mask)
{
	int result;

	if (capacity <= 0)
		return -EINVAL;
	epoll->references++;
	result = wait_held(epoll, epoll_fd, events, capacity, until_us, mask);
	release(epoll);
	return result;
}
