/* SPDX-License-Identifier: Apache-2.0 */
#include "netstat/port_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "local_socket/port_local_socket.h"
#include "service/stackd.h"

enum { PATIENCE_S = 10 }; /* programs have a fifth of a second; the rest is the service's */

static int connect_to(const char *path)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int err, service = local_connect(path);

	if (service < 0 || setsockopt(service, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0)
		return service;
	err = -errno;
	close(service);
	return err;
}

/* Receive the answer. Return the text's descriptor or -errno. */
static int receive(int service)
{
	struct stackd_answer answer = { .result = 0 };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	const struct cmsghdr *given;
	ssize_t length;
	int text;

	do
		length = recvmsg(service, &message, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == ECONNRESET); /* once, before what was sent ahead of it */
	given = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (length < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (length == (ssize_t)sizeof(answer) && answer.verb == STACKD_HELLO && answer.result)
		return answer.result;
	if (length != (ssize_t)sizeof(answer) || answer.verb != STACKD_STATISTICS || answer.result == -EINVAL)
		return -EPROTO;
	if (answer.result)
		return answer.result;
	if (!given || given->cmsg_level != SOL_SOCKET || given->cmsg_type != SCM_RIGHTS || given->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(&text, CMSG_DATA(given), sizeof(text));
	return text;
}

static int read_all(int descriptor, char **text)
{
	struct stat about;
	size_t bytes, used = 0;

	if (fstat(descriptor, &about) < 0)
		return -errno;
	bytes = (size_t)about.st_size;
	*text = malloc(bytes + 1);
	if (!*text)
		return -ENOMEM;
	while (used < bytes) {
		const ssize_t length = pread(descriptor, *text + used, bytes - used, (off_t)used);

		if (length <= 0) {
			free(*text);
			return length ? -errno : -EIO;
		}
		used += (size_t)length;
	}
	(*text)[bytes] = '\0';
	return 0;
}

int ask_statistics(const char *socket_path, char **text)
{
	const struct stackd_request request = { .version = STACKD_VERSION, .verb = STACKD_STATISTICS, .number = 1 };
	int err = 0, descriptor, service = connect_to(socket_path);

	if (service < 0)
		return service;
	if (send(service, &request, sizeof(request), MSG_NOSIGNAL) < 0 && errno != EPIPE) /* who has closed it may have said why */
		err = -errno;
	descriptor = err ? err : receive(service);
	close(service);
	if (descriptor < 0)
		return descriptor;
	err = read_all(descriptor, text);
	close(descriptor);
	return err;
}
