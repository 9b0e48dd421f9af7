/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoll over sockets of both stacks. An epoll of the program stays one of the kernel, for what the kernel has; beside it stands a
 * list of the sockets of the user-mode stack that it watches, and of those of them that have something to say. Called with the lock.
 */
#ifndef BW_ACCEL_EPOLL_H
#define BW_ACCEL_EPOLL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct epoll;
struct open_socket;

/** @return the epoll of a descriptor, or NULL; may be asked without the lock as a hint */
struct epoll *epoll_find(int fd);
/** @return the next descriptor behind `fd` that means an epoll, or -1; -1 begins */
int epoll_next(int fd);
/** Note a new epoll of the kernel. @return 0 or -errno */
int epoll_add(int fd);
/** Another descriptor means the same. @return 0 or -errno */
int epoll_share(struct epoll *epoll, int fd);
void epoll_forget(int fd);

/** As epoll_ctl(2). @return 0 or -errno */
int epoll_control(struct epoll *epoll, int epoll_fd, int operation, int fd, struct epoll_event *event);
/** As epoll_pwait2(2). @param until_us  as struct wait has it @return events or -errno */
int epoll_wait_for(struct epoll *epoll, int epoll_fd, struct epoll_event *events, int capacity, uint64_t until_us, const sigset_t *mask);
/** Whether a socket of the user-mode stack that it watches has something to say; poll(2) on the epoll itself says so. */
bool epoll_has_news(const struct epoll *epoll);

/** What a socket can do has changed. */
void epoll_socket_changed(struct open_socket *sock);
/** A socket has gone to the one or the other stack: where it is watched follows. */
void epoll_socket_moved(struct open_socket *sock);
/** A descriptor of a socket is closed, as the kernel does it: who watches by it does no more once the socket is gone. */
void epoll_forget_descriptor(struct open_socket *sock, int fd);
void epoll_forget_socket(struct open_socket *sock);

#endif
