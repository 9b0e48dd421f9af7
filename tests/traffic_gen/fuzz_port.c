/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_port.h"

#include <errno.h>
#include <string.h>

#define TAI_UTC_NS (TAI_UTC_DEFAULT_S * INT64_C(1000000000))
#define STEP_FLOOR_NS INT64_C(100000)

enum kind { DATAGRAMS, LISTENER, STREAM };

struct datagram {
	struct address source;
	size_t size_bytes;
};

struct socket {
	enum kind kind;
	struct address local, peer;
	bool connected;             /* datagrams: only of peer */
	bool stamps;
	bool ended, shut;           /* streams: nothing more comes */
	int end_error, read_error;
	struct port_poller *poller;
	void *user;
	int backlog_count;
	port_socket backlog[FUZZ_BACKLOG_MAX];
	size_t begin, end;          /* of what waits in queue */
	uint8_t queue[FUZZ_QUEUE_BYTES];
};

struct port_poller {
	int capacity, count;
	port_socket sockets[FUZZ_SOCKETS_MAX];
};

struct fuzz_port fuzz_port;
static struct socket *sockets[FUZZ_SOCKETS_MAX];
static int socket_count; /* numbers are never used again within an input: a stale one is noticed */

/* ---- what the target calls -------------------------------------------------------------------------------------- */

void fuzz_port_reset(int64_t tai_ns)
{
	for (int i = 0; i < socket_count; i++) {
		free(sockets[i]);
		sockets[i] = NULL;
	}
	socket_count = 0;
	memset(&fuzz_port, 0, sizeof(fuzz_port));
	fuzz_port.monotonic_ns = INT64_C(1000000000000);
	fuzz_port.tai_minus_monotonic_ns = tai_ns - fuzz_port.monotonic_ns;
}

void fuzz_port_expect_all_closed(void)
{
	for (int i = 0; i < socket_count; i++)
		promise(!sockets[i]);
}

static struct socket *socket_of(port_socket sock)
{
	promise(sock >= 0 && sock < socket_count && sockets[sock]);
	return sockets[sock];
}

static bool is_open(port_socket sock)
{
	return sock >= 0 && sock < socket_count && sockets[sock];
}

static port_socket make(enum kind kind, const struct address *local)
{
	if (socket_count == FUZZ_SOCKETS_MAX)
		return PORT_SOCKET_NONE;
	sockets[socket_count] = malloc(sizeof(struct socket));
	promise(sockets[socket_count] != NULL);
	memset(sockets[socket_count], 0, offsetof(struct socket, queue));
	sockets[socket_count]->kind = kind;
	sockets[socket_count]->local = *local;
	return socket_count++;
}

port_socket fuzz_port_bound(uint16_t port)
{
	for (int i = 0; i < socket_count; i++) {
		if (sockets[i] && sockets[i]->kind != STREAM && sockets[i]->local.port == port)
			return i;
	}
	return PORT_SOCKET_NONE;
}

port_socket fuzz_port_connect(port_socket listener, const struct address *source)
{
	port_socket sock;

	if (!is_open(listener) || sockets[listener]->backlog_count == FUZZ_BACKLOG_MAX)
		return PORT_SOCKET_NONE;
	sock = make(STREAM, &sockets[listener]->local);
	if (sock == PORT_SOCKET_NONE)
		return sock;
	sockets[sock]->peer = *source;
	sockets[listener]->backlog[sockets[listener]->backlog_count++] = sock;
	return sock;
}

static size_t room_for(struct socket *socket, size_t size_bytes)
{
	if (socket->begin == socket->end)
		socket->begin = socket->end = 0;
	if (socket->begin && FUZZ_QUEUE_BYTES - socket->end < size_bytes) {
		memmove(socket->queue, socket->queue + socket->begin, socket->end - socket->begin);
		socket->end -= socket->begin;
		socket->begin = 0;
	}
	return FUZZ_QUEUE_BYTES - socket->end;
}

void fuzz_port_feed(port_socket sock, const uint8_t *bytes, size_t size_bytes)
{
	struct socket *socket;
	size_t room;

	if (!is_open(sock) || sockets[sock]->kind != STREAM || sockets[sock]->ended || sockets[sock]->shut)
		return;
	socket = sockets[sock];
	room = room_for(socket, size_bytes);
	if (size_bytes > room)
		size_bytes = room;
	memcpy(socket->queue + socket->end, bytes, size_bytes);
	socket->end += size_bytes;
}

void fuzz_port_end(port_socket sock, int error)
{
	if (!is_open(sock) || sockets[sock]->kind != STREAM)
		return;
	sockets[sock]->ended = true;
	sockets[sock]->end_error = error;
}

void fuzz_port_datagram(port_socket sock, const uint8_t *bytes, size_t size_bytes, const struct address *source)
{
	struct datagram head = { *source, size_bytes };
	struct socket *socket;

	if (!is_open(sock) || sockets[sock]->kind != DATAGRAMS)
		return;
	socket = sockets[sock];
	if (room_for(socket, sizeof(head) + size_bytes) < sizeof(head) + size_bytes)
		return;
	if (socket->connected && (source->ipv4 != socket->peer.ipv4 || source->port != socket->peer.port))
		return;
	memcpy(socket->queue + socket->end, &head, sizeof(head));
	memcpy(socket->queue + socket->end + sizeof(head), bytes, size_bytes);
	socket->end += sizeof(head) + size_bytes;
}

void fuzz_port_fail_read(port_socket sock, int error)
{
	if (is_open(sock))
		sockets[sock]->read_error = error;
}

uint64_t script_take(struct script *script, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++) {
		value = value << 8 | (script->left ? *script->data : 0);
		if (script->left) {
			script->data++;
			script->left--;
		}
	}
	return value;
}

size_t script_take_bytes(struct script *script, size_t wanted, const uint8_t **bytes)
{
	size_t taken = wanted < script->left ? wanted : script->left;

	*bytes = script->data;
	script->data += taken;
	script->left -= taken;
	return taken;
}

/* ---- what the program calls -------------------------------------------------------------------------------------- */

static int once(int *failure)
{
	int err = *failure;

	*failure = 0;
	return err;
}

int64_t port_clock_now_ns(enum port_clock clock)
{
	if (clock == PORT_CLOCK_MONOTONIC)
		return fuzz_port.monotonic_ns;
	return fuzz_port.monotonic_ns + fuzz_port.tai_minus_monotonic_ns - TAI_UTC_NS;
}

int64_t port_tai_now_ns(const struct port_tai *tai)
{
	(void)tai;
	return fuzz_port.monotonic_ns + fuzz_port.tai_minus_monotonic_ns;
}

int64_t port_tai_from_realtime_ns(const struct port_tai *tai, int64_t realtime_ns)
{
	(void)tai;
	return realtime_ns + TAI_UTC_NS;
}

int64_t port_clock_step_floor_ns(void)
{
	return STEP_FLOOR_NS;
}

bool port_clocks_slew_together(void)
{
	return true;
}

bool port_stop_requested(void)
{
	return fuzz_port.stop;
}

int port_udp_open(const struct address *local, port_socket *socket_out)
{
	*socket_out = make(DATAGRAMS, local);
	return *socket_out == PORT_SOCKET_NONE ? -EMFILE : 0;
}

int port_udp_connect(port_socket sock, const struct address *peer)
{
	socket_of(sock)->peer = *peer;
	socket_of(sock)->connected = true;
	return 0;
}

int port_tcp_listen(const struct address *local, int backlog, port_socket *socket_out)
{
	(void)backlog;
	*socket_out = make(LISTENER, local);
	return *socket_out == PORT_SOCKET_NONE ? -EMFILE : 0;
}

int port_tcp_accept(port_socket listener, port_socket *socket_out, struct address *source)
{
	struct socket *socket = socket_of(listener);
	int err = once(&fuzz_port.fail_accept);

	promise(socket->kind == LISTENER);
	if (err)
		return err;
	if (!socket->backlog_count)
		return -EAGAIN;
	*socket_out = socket->backlog[0];
	memmove(socket->backlog, socket->backlog + 1, sizeof(socket->backlog) - sizeof(socket->backlog[0]));
	socket->backlog_count--;
	*source = socket_of(*socket_out)->peer;
	if (fuzz_port.watch.accepted)
		fuzz_port.watch.accepted(*socket_out, listener, source);
	return 0;
}

void port_tcp_shutdown_input(port_socket sock)
{
	promise(socket_of(sock)->kind == STREAM);
	socket_of(sock)->shut = true;
}

void port_socket_close(port_socket sock)
{
	struct socket *socket = socket_of(sock);

	if (fuzz_port.watch.closed)
		fuzz_port.watch.closed(sock);
	if (socket->poller) { /* the kernel forgets a closed socket; only one that is closed for good may do that */
		struct port_poller *poller = socket->poller;

		for (int i = 0; i < poller->count; i++) {
			if (poller->sockets[i] == sock)
				poller->sockets[i] = poller->sockets[--poller->count];
		}
	}
	for (int i = 0; i < socket->backlog_count; i++) {
		free(socket_of(socket->backlog[i]));
		sockets[socket->backlog[i]] = NULL;
	}
	free(socket);
	sockets[sock] = NULL;
}

void port_socket_abort(port_socket sock)
{
	promise(socket_of(sock)->kind == STREAM);
	port_socket_close(sock);
}

int port_socket_set_receive_buffer(port_socket sock, int size_bytes)
{
	(void)socket_of(sock);
	return size_bytes > 0 ? 0 : -EINVAL;
}

int port_socket_stamp_receive(port_socket sock)
{
	socket_of(sock)->stamps = fuzz_port.stamps;
	return fuzz_port.stamps ? 0 : -ENOTSUP;
}

static int64_t read_stream(struct socket *socket, void *data, size_t size_bytes)
{
	size_t length = socket->end - socket->begin;

	if (!length)
		return socket->shut ? 0 : socket->ended ? socket->end_error : -EAGAIN;
	if (length > size_bytes)
		length = size_bytes;
	if (fuzz_port.piece_bytes && length > fuzz_port.piece_bytes)
		length = fuzz_port.piece_bytes;
	memcpy(data, socket->queue + socket->begin, length);
	socket->begin += length;
	return (int64_t)length;
}

static int64_t read_datagram(struct socket *socket, void *data, size_t size_bytes, struct datagram *head)
{
	size_t length;

	if (socket->begin == socket->end)
		return -EAGAIN;
	memcpy(head, socket->queue + socket->begin, sizeof(*head));
	length = head->size_bytes < size_bytes ? head->size_bytes : size_bytes;
	memcpy(data, socket->queue + socket->begin + sizeof(*head), length);
	socket->begin += sizeof(*head) + head->size_bytes;
	return (int64_t)length;
}

int64_t port_recv(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	struct socket *socket = socket_of(sock);
	struct datagram head = { .size_bytes = 0 };
	int64_t length = once(&socket->read_error);
	bool truncated;

	promise(socket->kind != LISTENER && size_bytes > 0);
	if (!length)
		length = socket->kind == STREAM ? read_stream(socket, data, size_bytes) :
						  read_datagram(socket, data, size_bytes, &head);
	truncated = head.size_bytes > size_bytes;
	if (received && length >= 0) {
		*received = (struct port_received){ .source = head.source, .truncated = truncated };
		if (socket->stamps)
			received->stamp_realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME) - fuzz_port.stamp_age_ns;
	}
	if (length != -EAGAIN && fuzz_port.watch.received)
		fuzz_port.watch.received(sock, data, length, truncated, &head.source);
	return length;
}

int64_t port_send_to(port_socket sock, const void *data, size_t size_bytes, const struct address *peer, bool want_transmit)
{
	int err = once(&fuzz_port.fail_send);

	promise(socket_of(sock)->kind == DATAGRAMS && !want_transmit);
	if (fuzz_port.watch.sent)
		fuzz_port.watch.sent(sock, data, size_bytes, peer);
	return err ? err : (int64_t)size_bytes;
}

int64_t port_send(port_socket sock, const struct port_slice *slices, int count, bool want_transmit)
{
	promise(count == 1 && !want_transmit && socket_of(sock)->connected);
	return port_send_to(sock, slices[0].data, slices[0].size_bytes, &socket_of(sock)->peer, false);
}

static bool is_readable(const struct socket *socket)
{
	return socket->begin != socket->end || socket->ended || socket->shut || socket->backlog_count || socket->read_error;
}

int port_socket_wait_readable(port_socket sock, int64_t timeout_ns)
{
	int err;

	(void)socket_of(sock);
	if (fuzz_port.watch.waits)
		fuzz_port.watch.waits(NULL);
	err = once(&fuzz_port.fail_wait);
	if (err)
		return err;
	if (is_readable(socket_of(sock)))
		return 0;
	fuzz_port.monotonic_ns += timeout_ns;
	return -ETIMEDOUT;
}

int port_poller_create(int capacity, struct port_poller **poller_out)
{
	*poller_out = calloc(1, sizeof(**poller_out));
	promise(*poller_out && capacity > 0 && capacity <= FUZZ_SOCKETS_MAX);
	(*poller_out)->capacity = capacity;
	return 0;
}

int port_socket_set_busy_poll(port_socket sock, int busy_poll_us)
{
	(void)socket_of(sock);
	promise(busy_poll_us > 0);
	return 0;
}

int port_poller_set_busy_poll(struct port_poller *poller, int busy_poll_us)
{
	promise(poller && busy_poll_us > 0);
	return 0;
}

void port_poller_destroy(struct port_poller *poller)
{
	for (int i = 0; poller && i < poller->count; i++) {
		if (is_open(poller->sockets[i]))
			sockets[poller->sockets[i]]->poller = NULL;
	}
	free(poller);
}

int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user)
{
	struct socket *socket = socket_of(sock);
	int err = once(&fuzz_port.fail_add);

	promise(events == PORT_POLL_IN && !socket->poller);
	if (err)
		return err;
	if (poller->count == poller->capacity)
		return -ENOSPC;
	poller->sockets[poller->count++] = sock;
	socket->poller = poller;
	socket->user = user;
	if (fuzz_port.watch.watched)
		fuzz_port.watch.watched(sock, poller);
	return 0;
}

int port_poller_remove(struct port_poller *poller, port_socket sock)
{
	promise(socket_of(sock)->poller == poller);
	socket_of(sock)->poller = NULL;
	for (int i = 0; i < poller->count; i++) {
		if (poller->sockets[i] == sock) {
			poller->sockets[i] = poller->sockets[--poller->count];
			return 0;
		}
	}
	promise(0);
	return -ENOENT;
}

int port_poller_wait(struct port_poller *poller, struct port_event *events, int capacity, int64_t timeout_ns)
{
	int count = 0;

	(void)timeout_ns;
	if (fuzz_port.watch.waits)
		fuzz_port.watch.waits(poller);
	for (int i = 0; i < poller->count && count < capacity; i++) {
		struct socket *socket = socket_of(poller->sockets[(fuzz_port.turn + (unsigned int)i) % (unsigned int)poller->count]);

		if (fuzz_port.spurious || is_readable(socket))
			events[count++] = (struct port_event){ socket->user, PORT_POLL_IN };
	}
	return count;
}

/* ---- there are no threads and no files ----------------------------------------------------------------------------- */

int port_thread_start(const char *name, int priority, int cpu, void (*run)(void *), void *argument,
		      struct port_thread **thread_out)
{
	(void)name, (void)priority, (void)cpu, (void)run, (void)argument, (void)thread_out;
	return -ENOTSUP;
}

void port_thread_join(struct port_thread *thread)
{
	(void)thread;
	promise(0);
}

int port_sleep_ns(int64_t duration_ns)
{
	fuzz_port.monotonic_ns += duration_ns;
	return 0;
}

int port_directory_create(const char *path)
{
	(void)path;
	return -ENOTSUP;
}
