/* SPDX-License-Identifier: Apache-2.0 */
#include "port_stackd.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "port_libc.h"

static uint32_t last_number;

int stackd_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = libc_calls()->socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (libc_calls()->connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		err = -errno;
		libc_calls()->close(fd);
		return err;
	}
	return fd;
}

int stackd_tell(int service, struct stackd_request *request, int descriptor)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { request, sizeof(*request) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	request->version = STACKD_VERSION;
	request->number = ++last_number ? last_number : ++last_number; /* 0 is that of events */
	if (descriptor >= 0) {
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
	}
	do
		sent = libc_calls()->sendmsg(service, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void take_descriptors(struct msghdr *message, int descriptors[2])
{
	for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each; each = CMSG_NXTHDR(message, each)) {
		int all[2];
		size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS || count > 2)
			continue;
		memcpy(all, CMSG_DATA(each), count * sizeof(int));
		for (size_t i = 0; i < count; i++) {
			if (descriptors)
				descriptors[i] = all[i];
			else
				libc_calls()->close(all[i]);
		}
	}
}

/* Receive one. Return 0, -EAGAIN, or -errno: the service is gone. */
static int receive(int service, struct stackd_answer *answer, int descriptors[2], int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec part = { answer, sizeof(*answer) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t length;

	do
		length = libc_calls()->recvmsg(service, &message, flags | MSG_CMSG_CLOEXEC);
	while (length < 0 && (errno == EINTR || errno == ECONNRESET)); /* the latter comes once, before what was sent ahead of it */
	if (length < 0)
		return -errno;
	take_descriptors(&message, descriptors);
	if (length < (ssize_t)sizeof(*answer))
		return length ? -EPROTO : -EPIPE;
	return answer->verb == STACKD_HELLO && !answer->number ? answer->result : 0;
}

int stackd_ask(int service, struct stackd_request *request, int descriptor, struct stackd_answer *answer, int descriptors[2],
	       stackd_heard *heard)
{
	int err = stackd_tell(service, request, descriptor);

	if (descriptors)
		descriptors[0] = descriptors[1] = -1;
	if (err == -EPIPE)
		err = 0; /* it may have said why */
	while (!err) {
		err = receive(service, answer, descriptors, 0);
		if (!err && answer->number == request->number)
			break;
		if (!err)
			heard(answer);
	}
	return err;
}

int stackd_hear(int service, stackd_heard *heard)
{
	struct stackd_answer event;
	int err;

	while ((err = receive(service, &event, NULL, MSG_DONTWAIT)) == 0)
		heard(&event);
	return err == -EAGAIN ? 0 : err;
}
