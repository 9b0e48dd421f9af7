/* SPDX-License-Identifier: Apache-2.0 */
#include "port_family.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "port_libc.h"
#include "port_private.h"

int family_pair(int type, int pair[2])
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pair[0] = private_move(pair[0]);
	return 0;
}

int family_send(int channel, const struct family_answer *answer, int descriptor)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (descriptor >= 0) {
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
	}
	return libc_calls()->sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int family_receive(int channel, struct family_answer *answer, int *descriptor, int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t length = libc_calls()->recvmsg(channel, &message, flags);
	const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*descriptor = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(descriptor, CMSG_DATA(header), sizeof(*descriptor));
	if (length < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return length == (ssize_t)sizeof(*answer) ? 0 : -EPIPE;
}
