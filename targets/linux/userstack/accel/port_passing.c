/* SPDX-License-Identifier: Apache-2.0 */
#include "port_passing.h"

#include <stdatomic.h>
#include <string.h>

#include "port_say.h"
#include "port_sockets.h"

static bool is_of_stack(int fd)
{
	const struct open_socket *sock = sockets_find(fd);

	return sock && sock->owner != OWNER_UNDECIDED && sock->owner != OWNER_KERNEL;
}

static void say_once(int fd)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		say("socket %d is the user-mode stack's, and cannot be sent to another process (SCM_RIGHTS)", fd);
}

static bool has_ours(const struct cmsghdr *head)
{
	size_t bytes = head->cmsg_len - CMSG_LEN(0);
	int fd;

	for (size_t at = 0; at + sizeof(fd) <= bytes; at += sizeof(fd)) {
		memcpy(&fd, CMSG_DATA(head) + at, sizeof(fd));
		if (is_of_stack(fd)) {
			say_once(fd);
			return true;
		}
	}
	return false;
}

bool passing_takes_ours(const struct msghdr *message)
{
	struct msghdr walked;

	if (!message->msg_control || message->msg_controllen < sizeof(struct cmsghdr))
		return false;
	walked = *message;
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&walked); head; head = CMSG_NXTHDR(&walked, head)) {
		const uint8_t *end = (const uint8_t *)walked.msg_control + walked.msg_controllen;

		if (head->cmsg_len < CMSG_LEN(0) || head->cmsg_len > (size_t)(end - (const uint8_t *)head))
			return false; /* the kernel says what it thinks of that */
		if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && has_ours(head))
			return true;
	}
	return false;
}
