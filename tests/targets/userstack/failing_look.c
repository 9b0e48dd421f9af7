/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the place of the C library's `send`, by LD_PRELOAD: the first request for an interface fails after the file has come that
 * FAILING_LOOK names, which then goes. For test_stackd_ways.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef ssize_t send_function(int socket, const void *data, size_t bytes, int flags);

ssize_t send(int socket, const void *data, size_t bytes, int flags)
{
	static send_function *next;
	const struct nlmsghdr *message = data;
	const char *file = getenv("FAILING_LOOK");

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "send");
	if (file && bytes >= sizeof(*message) && message->nlmsg_len == bytes && message->nlmsg_type == RTM_GETLINK && !unlink(file)) {
		errno = ENOBUFS;
		return -1;
	}
	return next(socket, data, bytes, flags);
}
