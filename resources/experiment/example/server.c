/* SPDX-License-Identifier: Apache-2.0 */
/* A server that takes part in an experiment: it listens in one phase, and sends back what comes in the next until the client closes. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bwphase.h"

enum { MESSAGE_BYTES = 48 };

static int listener = -1;

static int fail(char *reason, size_t reason_bytes, const char *what)
{
	snprintf(reason, reason_bytes, "%s: %s", what, strerror(errno));
	return -1;
}

/* What stands behind "KEY": in the text of a JSON object. */
static const char *value_of(const char *parameters, const char *key)
{
	const char *found = strstr(parameters, key);

	return found ? found + strlen(key) : "";
}

static int listen_now(void *context, const char *parameters, char *reason, size_t reason_bytes)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	char address[INET_ADDRSTRLEN] = "";
	int on = 1;

	(void)context;
	sscanf(value_of(parameters, "\"address\":\""), "%15[0-9.]", address);
	own.sin_port = htons((uint16_t)strtol(value_of(parameters, "\"port\":"), NULL, 10));
	if (inet_pton(AF_INET, address, &own.sin_addr) != 1) {
		snprintf(reason, reason_bytes, "address: must be one of IPv4, found '%s'", address);
		return -1;
	}
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 1))
		return fail(reason, reason_bytes, address);
	return 0;
}

static int answer(void *context, const char *parameters, char *reason, size_t reason_bytes)
{
	char message[MESSAGE_BYTES];
	long answered = 0;
	int client;

	(void)context;
	(void)parameters;
	client = accept(listener, NULL, NULL);
	if (client < 0)
		return fail(reason, reason_bytes, "accept");
	while (recv(client, message, sizeof(message), MSG_WAITALL) == (ssize_t)sizeof(message)) {
		if (send(client, message, sizeof(message), MSG_NOSIGNAL) != (ssize_t)sizeof(message))
			return fail(reason, reason_bytes, "send");
		answered++;
	}
	close(client);
	close(listener);
	return bw_phase_value("answered", (double)answered);
}

int main(void)
{
	bw_phase_register("listen", listen_now, NULL);
	bw_phase_register("answer", answer, NULL);
	return bw_phase_run();
}
