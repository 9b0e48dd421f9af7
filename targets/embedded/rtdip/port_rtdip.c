/* SPDX-License-Identifier: Apache-2.0 */
#include "rtdip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"
#include "numbers.h"
#include "queue.h"
#include "service.h"

#define LOOK_NS NS_PER_MS /* how often who polls looks for the end of the service: a look is a system call, an empty ring none */

/* A port's ring, as the kernel lays it out: a page with the reader's position, one with the writer's, the data twice over. */
struct ring {
	int descriptor;
	uint16_t port;
	uint32_t bytes;
	_Atomic unsigned long *read_at;
	const _Atomic unsigned long *written_to;
	const uint8_t *data;
};

struct rtdip {
	int service, sending, epoll;
	int64_t looked_monotonic_ns; /* for the end of the service, without waiting */
	struct rtdip_answer about;
	int ring_count;
	struct ring rings[RTDIP_HANDLE_PORTS_MAX];
	struct queue queues[RTDIP_PRIORITIES];
	struct rtdip_counts counts;
	struct numbers sent, heard;
};

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Ask the service. Return 0 or more, or -errno; *descriptor: what came with the answer, or -1. */
static int ask(struct rtdip *handle, const struct rtdip_request *request, struct rtdip_answer *answer, int *descriptor)
{
	struct iovec part = { answer, sizeof(*answer) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	ssize_t length;

	*descriptor = -1;
	if (send(handle->service, request, sizeof(*request), MSG_NOSIGNAL) < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	do
		length = recvmsg(handle->service, &message, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	if (length <= 0)
		return -EPIPE;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(descriptor, CMSG_DATA(header), sizeof(int));
	if (length < (ssize_t)sizeof(*answer) || answer->version != RTDIP_SERVICE_VERSION)
		return -EPROTO;
	return answer->result;
}

static int watch(struct rtdip *handle, int descriptor, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = descriptor };

	return epoll_ctl(handle->epoll, EPOLL_CTL_ADD, descriptor, &event) ? -errno : 0;
}

/* Each record that is whole is told of once: a ring stays readable while one is being written, too. */
static int watch_ring(struct rtdip *handle, const struct ring *ring)
{
	return watch(handle, ring->descriptor, EPOLLIN | EPOLLET);
}

/* @return 0 or -ENAMETOOLONG */
static int address_of_service(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

int rtdip_connect(const char *path)
{
	struct sockaddr_un address;
	int service, err = address_of_service(path, &address);

	if (err)
		return err;
	service = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (service < 0)
		return -errno;
	if (connect(service, (struct sockaddr *)&address, sizeof(address)) < 0) {
		err = -errno;
		close(service);
		return err;
	}
	return service;
}

static int connect_service(struct rtdip *handle, const char *path, unsigned int flags)
{
	const struct rtdip_request hello = { .verb = RTDIP_HELLO, .version = RTDIP_SERVICE_VERSION };
	const int bypass = 1;
	int err;

	handle->service = rtdip_connect(path);
	if (handle->service < 0)
		return handle->service;
	err = ask(handle, &hello, &handle->about, &handle->sending);
	if (err < 0)
		return err;
	if ((flags & RTDIP_BYPASS_QDISC) &&
	    setsockopt(handle->sending, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof(bypass)) < 0)
		return -errno;
	return watch(handle, handle->service, EPOLLIN);
}

int rtdip_open(const char *socket_path, unsigned int flags, struct rtdip **handle_out)
{
	struct rtdip *handle = calloc(1, sizeof(*handle));
	int err = 0;

	*handle_out = NULL;
	if (!handle)
		return -ENOMEM;
	handle->service = handle->sending = -1;
	handle->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (handle->epoll < 0)
		err = -errno;
	if (!err)
		err = connect_service(handle, socket_path ? socket_path : RTDIP_SOCKET, flags);
	if (err) {
		rtdip_close(handle);
		return err;
	}
	*handle_out = handle;
	return 0;
}

static void unmap(struct ring *ring)
{
	long page = sysconf(_SC_PAGESIZE);

	if (ring->read_at)
		munmap((void *)(uintptr_t)ring->read_at, (size_t)page);
	if (ring->written_to)
		munmap((void *)(uintptr_t)ring->written_to, (size_t)page + 2 * (size_t)ring->bytes);
	close(ring->descriptor);
}

void rtdip_close(struct rtdip *handle)
{
	if (!handle)
		return;
	for (int i = 0; i < handle->ring_count; i++)
		unmap(&handle->rings[i]);
	for (int i = 0; i < RTDIP_PRIORITIES; i++)
		free(handle->queues[i].bytes);
	if (handle->sending >= 0)
		close(handle->sending);
	if (handle->service >= 0)
		close(handle->service);
	if (handle->epoll >= 0)
		close(handle->epoll);
	free(handle);
}

static struct ring *find_ring(struct rtdip *handle, uint16_t port)
{
	for (int i = 0; i < handle->ring_count; i++) {
		if (handle->rings[i].port == port)
			return &handle->rings[i];
	}
	return NULL;
}

static int map_ring(struct ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *reader = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->descriptor, 0);
	uint8_t *writer = mmap(NULL, page + 2 * (size_t)ring->bytes, PROT_READ, MAP_SHARED, ring->descriptor, (off_t)page);

	ring->read_at = reader == MAP_FAILED ? NULL : reader;
	ring->written_to = writer == MAP_FAILED ? NULL : (void *)writer;
	ring->data = writer + page;
	return ring->read_at && ring->written_to ? 0 : -errno;
}

static bool all_is_read(const struct rtdip *handle)
{
	for (int i = 0; i < RTDIP_PRIORITIES; i++) {
		if (handle->queues[i].begin != handle->queues[i].end)
			return false;
	}
	return true;
}

/* Each priority's queue holds what all rings hold: so low frames never keep a high one in its ring. Return 0 or -ENOMEM. */
static int fit_queues(struct rtdip *handle)
{
	size_t room = 0;

	for (int i = 0; i < handle->ring_count; i++)
		room += handle->rings[i].bytes;
	for (int i = 0; i < RTDIP_PRIORITIES; i++) {
		if (!queue_fit(&handle->queues[i], room))
			return -ENOMEM;
	}
	return 0;
}

int rtdip_bind(struct rtdip *handle, uint16_t port, uint32_t ring_bytes)
{
	const struct rtdip_request request = { RTDIP_BIND, ring_bytes ? ring_bytes : RTDIP_RING_BYTES, port,
						RTDIP_SERVICE_VERSION };
	struct ring *ring = &handle->rings[handle->ring_count];
	struct rtdip_answer answer;
	int err;

	if (handle->ring_count == RTDIP_HANDLE_PORTS_MAX)
		return -EMFILE;
	if (!rtdip_is_ring_size(request.ring_bytes))
		return -EINVAL;
	if (!all_is_read(handle))
		return -EBUSY; /* read what has come first */
	memset(ring, 0, sizeof(*ring));
	err = ask(handle, &request, &answer, &ring->descriptor);
	if (err < 0)
		return err;
	ring->port = (uint16_t)err;
	ring->bytes = answer.ring_bytes;
	handle->ring_count++;
	err = map_ring(ring);
	if (!err)
		err = watch_ring(handle, ring);
	if (!err)
		err = fit_queues(handle);
	if (err) {
		rtdip_unbind(handle, ring->port);
		return err;
	}
	return ring->port;
}

static size_t record_bytes(const struct rtdip_record *record)
{
	return sizeof(*record) + record->payload_bytes;
}

/* Take everything out of a ring, into the queues or for nobody. Return false where a record is being written. */
static bool drain(struct rtdip *handle, struct ring *ring, bool is_heard)
{
	unsigned long at = atomic_load_explicit(ring->read_at, memory_order_relaxed);

	while (at != atomic_load_explicit(ring->written_to, memory_order_acquire)) { /* both wrap on 32 bits */
		const _Atomic uint32_t *head = (const void *)(ring->data + (at & (ring->bytes - 1)));
		uint32_t length = atomic_load_explicit(head, memory_order_acquire);
		const struct rtdip_record *record = (const void *)((const uint8_t *)head + BPF_RINGBUF_HDR_SZ);

		if (length & BPF_RINGBUF_BUSY_BIT)
			return false;
		if (!(length & BPF_RINGBUF_DISCARD_BIT)) {
			const uint8_t *payload = (const uint8_t *)(record + 1);
			enum rtdip_priority priority = payload[2] < RTDIP_PRIORITIES ? payload[2] : RTDIP_LOW;

			if (!is_heard || !queue_put(&handle->queues[priority], (const uint8_t *)record, record_bytes(record)))
				handle->counts.unheard++;
		}
		at += queue_aligned((length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT)) + BPF_RINGBUF_HDR_SZ);
		atomic_store_explicit(ring->read_at, at, memory_order_release);
		/* Whoever writes the next record sees where we are, and wakes us, or we see it whole. */
		atomic_thread_fence(memory_order_seq_cst);
	}
	return true;
}

int rtdip_unbind(struct rtdip *handle, uint16_t port)
{
	const struct rtdip_request request = { .verb = RTDIP_UNBIND, .port = port, .version = RTDIP_SERVICE_VERSION };
	struct ring *ring = find_ring(handle, port);
	struct rtdip_answer answer;
	int none, err;

	if (!ring)
		return -EINVAL;
	err = ask(handle, &request, &answer, &none); /* nothing comes any more */
	if (ring->read_at && ring->written_to)
		drain(handle, ring, false);
	epoll_ctl(handle->epoll, EPOLL_CTL_DEL, ring->descriptor, NULL);
	unmap(ring);
	*ring = handle->rings[--handle->ring_count];
	fit_queues(handle); /* where there is no memory they stay larger than they need be */
	return err;
}

int64_t rtdip_send(struct rtdip *handle, const struct rtdip_address *to, uint16_t from_port, enum rtdip_priority priority,
		   const void *data, size_t size_bytes)
{
	uint32_t *number = NULL;
	struct {
		uint8_t to[RTDIP_MAC_BYTES], from[RTDIP_MAC_BYTES];
		uint16_t ethertype;
		uint8_t header[RTDIP_HEADER_BYTES];
	} front = { .ethertype = htons(RTDIP_ETHERTYPE) };
	struct rtdip_header header = {
		.destination_port = to->port, .priority = (uint8_t)priority, .length_bytes = (uint16_t)size_bytes,
		.source_port = from_port,
	};
	struct iovec parts[2] = { { &front, sizeof(front) }, { (void *)(uintptr_t)data, size_bytes } };
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	if (size_bytes > handle->about.data_max_bytes)
		return -EMSGSIZE;
	if ((from_port && !find_ring(handle, from_port)) || to->port == 0 || priority >= RTDIP_PRIORITIES)
		return -EINVAL;
	if (from_port) {
		number = numbers_next(&handle->sent, from_port, to);
		header.sequence = *number;
	}
	memcpy(front.to, to->mac, RTDIP_MAC_BYTES);
	memcpy(front.from, handle->about.mac, RTDIP_MAC_BYTES);
	rtdip_pack(&header, front.header);
	if (sendmsg(handle->sending, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return errno == ENOBUFS ? -EAGAIN : -errno;
	if (number)
		(*number)++;
	handle->counts.sent++;
	return (int64_t)size_bytes;
}

static bool drain_all(struct rtdip *handle)
{
	bool whole = true;

	for (int i = 0; i < handle->ring_count; i++)
		whole &= drain(handle, &handle->rings[i], true);
	return whole;
}

/*
 * Take all that has come. While a record is being written nobody may wait for it awake: on a preemptible kernel its writer may be
 * a thread of less priority on our processor. So what its ring told is taken back, and it tells us again when the record is whole.
 */
static void take_all(struct rtdip *handle)
{
	struct epoll_event events[RTDIP_HANDLE_PORTS_MAX + 1];

	if (!drain_all(handle)) {
		epoll_wait(handle->epoll, events, RTDIP_HANDLE_PORTS_MAX + 1, 0);
		drain_all(handle);
	}
}

/* Give the record that comes first. Return 0, or -EAGAIN. */
static int take_first(struct rtdip *handle, struct rtdip_message *message, void *data, size_t room_bytes)
{
	take_all(handle);
	for (int i = 0; i < RTDIP_PRIORITIES; i++) {
		struct queue *queue = &handle->queues[i];
		struct rtdip_header header;
		struct rtdip_record about;
		const uint8_t *record;

		while ((record = queue_oldest(queue)) != NULL) {
			memcpy(&about, record, sizeof(about));
			queue_take(queue, record_bytes(&about));
			if (rtdip_parse(record + sizeof(about), about.payload_bytes, &header) != 0)
				continue; /* the program lets none of these through */
			*message = (struct rtdip_message){
				.to_port = header.destination_port, .priority = header.priority,
				.sequence = header.sequence, .size_bytes = header.length_bytes,
				.received_monotonic_ns = (int64_t)about.received_monotonic_ns,
				.from.port = header.source_port,
			};
			memcpy(message->from.mac, about.source, RTDIP_MAC_BYTES);
			memcpy(data, record + sizeof(about) + RTDIP_HEADER_BYTES,
			       header.length_bytes < room_bytes ? header.length_bytes : room_bytes);
			handle->counts.received++;
			handle->counts.missing += (uint64_t)numbers_heard(&handle->heard, message);
			return 0;
		}
	}
	return -EAGAIN;
}

/* Wait until something has come. Return 0, -ETIMEDOUT, -EINTR or -EPIPE. */
static int wait_for_frame(struct rtdip *handle, int64_t deadline_monotonic_ns)
{
	int64_t left_ns = deadline_monotonic_ns < 0 ? 0 : deadline_monotonic_ns - monotonic_ns();
	const struct timespec timeout = { left_ns / NS_PER_S, left_ns % NS_PER_S };
	struct pollfd ready = { .fd = handle->epoll, .events = POLLIN };
	struct epoll_event events[RTDIP_HANDLE_PORTS_MAX + 1];
	int count;

	if (deadline_monotonic_ns >= 0 && left_ns <= 0)
		return -ETIMEDOUT;
	count = ppoll(&ready, 1, deadline_monotonic_ns < 0 ? NULL : &timeout, NULL);
	if (count <= 0)
		return count < 0 ? -errno : -ETIMEDOUT;
	count = epoll_wait(handle->epoll, events, RTDIP_HANDLE_PORTS_MAX + 1, 0);
	for (int i = 0; i < count; i++) {
		if (events[i].data.fd == handle->service && count == 1)
			return -EPIPE;
	}
	return 0;
}

bool rtdip_has_ended(const struct rtdip *handle)
{
	struct pollfd service = { .fd = handle->service, .events = POLLIN }; /* it says nothing unasked */

	return poll(&service, 1, 0) > 0;
}

/* For who does not wait. Return -EPIPE where the service has ended, else -ETIMEDOUT. */
static int look_for_end(struct rtdip *handle)
{
	int64_t now_monotonic_ns = monotonic_ns();

	if (now_monotonic_ns - handle->looked_monotonic_ns < LOOK_NS)
		return -ETIMEDOUT;
	if (rtdip_has_ended(handle))
		return -EPIPE;
	handle->looked_monotonic_ns = now_monotonic_ns;
	return -ETIMEDOUT;
}

int rtdip_receive(struct rtdip *handle, struct rtdip_message *message, void *data, size_t room_bytes, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = timeout_ns <= 0 ? timeout_ns : 0;
	int err;

	if (timeout_ns > 0 && __builtin_add_overflow(monotonic_ns(), timeout_ns, &deadline_monotonic_ns))
		deadline_monotonic_ns = -1;
	while ((err = take_first(handle, message, data, room_bytes)) == -EAGAIN) {
		err = timeout_ns == 0 ? look_for_end(handle) : wait_for_frame(handle, deadline_monotonic_ns);
		if (err == -EPIPE && take_first(handle, message, data, room_bytes) == 0)
			return 0; /* it came just before the end */
		if (err)
			break;
	}
	return err;
}

static int duplicate(int descriptor)
{
	int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -errno : copy;
}

uint32_t rtdip_data_max_bytes(const struct rtdip *handle)
{
	return handle->about.data_max_bytes;
}

int rtdip_descriptor(const struct rtdip *handle)
{
	return duplicate(handle->epoll);
}

int rtdip_sending_descriptor(const struct rtdip *handle)
{
	return duplicate(handle->sending);
}

void rtdip_counts(const struct rtdip *handle, struct rtdip_counts *counts)
{
	*counts = handle->counts;
}
