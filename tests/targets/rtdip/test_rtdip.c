/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of RTDiP without a kernel: headers, and that a frame of a higher priority always comes first. The test writes
 * rings as the kernel does, into memory that the library maps.
 */
#include "port_rtdip.c" /* NOLINT(bugprone-suspicious-include): its rings and queues are no business of others */

#include <stdbool.h>
#include <sys/mman.h>

#include "check.h"
#include "random.h"

enum { PORT = 7000, ROUNDS = 100000, HELD_MAX = 4096, RING_BYTES = 64 * 1024 };

static int watch_error;

/*
 * A ring as the kernel lets it be watched: readable from the moment at which room for a record is taken, though the record is not
 * whole; told is that a whole one woke who waits for it.
 */
static struct {
	uint32_t asked; /* events */
	bool readable, told;
	int waits, slept;
	_Atomic uint32_t *unfinished; /* a record that is whole once its reader sleeps, so that its writer has the processor */
} watched;

/* In the place of the C library's: the kernel watches rings, but not the files that stand in for them here. */
int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
	(void)epoll;
	(void)operation;
	(void)descriptor;
	watched.asked = event ? event->events : 0;
	errno = watch_error;
	return watch_error ? -1 : 0;
}

static bool is_told(void)
{
	return watched.asked & EPOLLET ? watched.told : watched.readable;
}

int epoll_wait(int epoll, struct epoll_event *events, int room, int timeout_ms)
{
	int count = is_told() && room > 0;

	(void)epoll;
	(void)timeout_ms;
	if (count)
		events[0] = (struct epoll_event){ .events = EPOLLIN, .data.fd = 0 };
	watched.told = false;
	return count;
}

/* The wait of a reader. One that does not sleep keeps the processor, but for a thousand turns. */
int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	(void)polled;
	(void)count;
	(void)timeout;
	(void)mask;
	watched.waits++;
	if (is_told() && watched.waits < 1000)
		return 1;
	watched.slept++;
	if (watched.unfinished)
		atomic_fetch_and(watched.unfinished, ~BPF_RINGBUF_BUSY_BIT);
	watched.told = true;
	return 1;
}

/* A ring as the kernel writes it. */
struct kernel_ring {
	uint8_t *pages; /* reader's page, writer's page, data once; the kernel maps it twice */
	size_t page;
	uint32_t bytes;
};

static struct rtdip *make_handle(struct kernel_ring *kernel, uint32_t bytes)
{
	struct rtdip *handle = calloc(1, sizeof(*handle));
	struct ring *ring = &handle->rings[0];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int memory = memfd_create("ring", 0);
	uint8_t *twice;

	CHECK(memory >= 0 && ftruncate(memory, (off_t)(2 * page + bytes)) == 0);
	twice = mmap(NULL, 2 * page + 2 * (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(twice != MAP_FAILED);
	CHECK(mmap(twice, 2 * page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == twice);
	CHECK(mmap(twice + 2 * page + bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, (off_t)(2 * page)) ==
	      twice + 2 * page + bytes);
	close(memory);
	*kernel = (struct kernel_ring){ twice, page, bytes };
	*ring = (struct ring){ .port = PORT, .bytes = bytes, .read_at = (void *)twice, .written_to = (void *)(twice + page),
			       .data = twice + 2 * page };
	handle->ring_count = 1;
	CHECK_INT(fit_queues(handle), 0);
	return handle;
}

static void free_handle(struct rtdip *handle, struct kernel_ring *kernel)
{
	munmap(kernel->pages, 2 * kernel->page + 2 * (size_t)kernel->bytes);
	for (int i = 0; i < RTDIP_PRIORITIES; i++)
		free(handle->queues[i].bytes);
	free(handle);
}

/* Put a frame into the ring. Return false where it is full. */
static bool write_frame(struct kernel_ring *kernel, enum rtdip_priority priority, uint32_t sequence, uint16_t length)
{
	unsigned long read_at = *(unsigned long *)(void *)kernel->pages;
	unsigned long *written_to = (unsigned long *)(void *)(kernel->pages + kernel->page);
	size_t room = length + RTDIP_HEADER_BYTES <= 64 ? 64 : length + RTDIP_HEADER_BYTES <= 256 ? 256 :
		      length + RTDIP_HEADER_BYTES <= 1504 ? 1504 : RTDIP_PAYLOAD_MAX_BYTES;
	size_t bytes = sizeof(struct rtdip_record) + room;
	uint8_t *head = kernel->pages + 2 * kernel->page + (*written_to & (kernel->bytes - 1));
	struct rtdip_header header = { PORT, (uint8_t)priority, length, 1, sequence };
	struct rtdip_record about = { .payload_bytes = (uint16_t)(length + RTDIP_HEADER_BYTES) };

	if (*written_to + BPF_RINGBUF_HDR_SZ + bytes - read_at > kernel->bytes)
		return false;
	*(uint32_t *)(void *)head = (uint32_t)bytes;
	memcpy(head + BPF_RINGBUF_HDR_SZ, &about, sizeof(about));
	rtdip_pack(&header, head + BPF_RINGBUF_HDR_SZ + sizeof(about));
	*written_to += BPF_RINGBUF_HDR_SZ + bytes;
	return true;
}

/* Random arrivals and reads: what is read is the oldest of the highest priority that is there. */
static void test_order(void)
{
	static uint32_t held[RTDIP_PRIORITIES][HELD_MAX];
	uint32_t first[RTDIP_PRIORITIES] = { 0 }, last[RTDIP_PRIORITIES] = { 0 }, sequence = 0;
	struct kernel_ring kernel;
	struct rtdip *handle = make_handle(&kernel, 512 * 1024);
	struct random random = { 1 };
	uint64_t wrong = 0, read = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint8_t data[RTDIP_DATA_MAX_BYTES];
		struct rtdip_message message;
		int expected = -1;

		for (uint64_t left = random_bits(&random) % 4; left > 0; left--) {
			enum rtdip_priority priority = (enum rtdip_priority)(random_bits(&random) % RTDIP_PRIORITIES);
			uint16_t length = (uint16_t)(random_bits(&random) % (RTDIP_DATA_MAX_BYTES + 1));

			if (last[priority] - first[priority] < HELD_MAX && write_frame(&kernel, priority, sequence, length))
				held[priority][last[priority]++ % HELD_MAX] = sequence++;
		}
		for (uint64_t left = random_bits(&random) % 5; left > 0; left--) {
			int err = take_first(handle, &message, data, sizeof(data));

			expected = -1;
			for (int i = RTDIP_PRIORITIES - 1; i >= 0; i--)
				expected = first[i] != last[i] ? i : expected;
			if (err) {
				wrong += expected >= 0;
				break;
			}
			wrong += expected < 0 || message.priority != (enum rtdip_priority)expected ||
				 message.sequence != held[expected][first[expected] % HELD_MAX];
			first[message.priority]++;
			read++;
		}
	}
	CHECK_INT(wrong, 0);
	CHECK(read > ROUNDS);
	CHECK_INT(handle->counts.unheard, 0);
	free_handle(handle, &kernel);
}

/* Low frames that nobody reads fill their queue; a high one behind them comes first all the same, and losses are counted. */
static void test_low_frames_never_delay_a_high_one(void)
{
	struct kernel_ring kernel;
	struct rtdip *handle = make_handle(&kernel, 16 * 1024);
	uint8_t data[RTDIP_DATA_MAX_BYTES];
	struct rtdip_message message;
	uint32_t written = 0, read = 0;

	for (int round = 0; round < 10; round++) {
		while (write_frame(&kernel, RTDIP_LOW, written, 1000))
			written++;
		drain_all(handle);
	}
	CHECK(write_frame(&kernel, RTDIP_HIGH, 1, 10));
	CHECK_INT(take_first(handle, &message, data, sizeof(data)), 0);
	CHECK_INT(message.priority, RTDIP_HIGH);
	while (take_first(handle, &message, data, sizeof(data)) == 0)
		read++;
	CHECK(read > 0);
	CHECK_INT(read + handle->counts.unheard, written);
	free_handle(handle, &kernel);
}

/* Who reads sleeps while a record is being written, and hears of it when it is whole: at the first wait, and at each after that. */
static void test_a_record_that_is_being_written(void)
{
	struct kernel_ring kernel;
	struct rtdip *handle = make_handle(&kernel, 16 * 1024);
	uint8_t data[RTDIP_DATA_MAX_BYTES];
	struct rtdip_message message;

	handle->service = -1;
	CHECK_INT(watch_ring(handle, &handle->rings[0]), 0);
	for (uint32_t number = 0; number < 3; number++) {
		size_t at = *(unsigned long *)(void *)(kernel.pages + kernel.page) & (kernel.bytes - 1);

		CHECK(write_frame(&kernel, RTDIP_HIGH, number, 10));
		watched.unfinished = (void *)(kernel.pages + 2 * kernel.page + at);
		atomic_fetch_or(watched.unfinished, BPF_RINGBUF_BUSY_BIT);
		watched.readable = watched.told = true;
		watched.waits = watched.slept = 0;
		CHECK_INT(rtdip_receive(handle, &message, data, sizeof(data), 0), -ETIMEDOUT);
		CHECK(!is_told()); /* nor does its descriptor wake anybody now */
		CHECK_INT(rtdip_receive(handle, &message, data, sizeof(data), NS_PER_S), 0);
		CHECK_INT(message.sequence, number);
		CHECK_INT(watched.waits, 1);
		CHECK_INT(watched.slept, 1);
	}
	watched.unfinished = NULL;
	free_handle(handle, &kernel);
}

static void test_header(void)
{
	const struct rtdip_header header = { 7000, RTDIP_LOW, 300, 9, 0x01020304 };
	uint8_t bytes[RTDIP_HEADER_BYTES];
	struct rtdip_header read;

	rtdip_pack(&header, bytes);
	CHECK_INT(memcmp(bytes, "\x1b\x58\x02\x01\x01\x2c\x00\x09\x01\x02\x03\x04", sizeof(bytes)), 0);
	CHECK_INT(rtdip_parse(bytes, RTDIP_HEADER_BYTES + 300, &read), 0);
	CHECK_INT(read.sequence, header.sequence);
	CHECK_INT(rtdip_parse(bytes, RTDIP_HEADER_BYTES + 299, &read), -EMSGSIZE);
	CHECK_INT(rtdip_parse(bytes, RTDIP_HEADER_BYTES - 1, &read), -EMSGSIZE);
	for (int i = 0; i < 4; i++) { /* priority, version, length, port */
		const struct { int at; uint8_t value; } wrong[] = { { 2, 3 }, { 3, 2 }, { 4, 0x23 }, { 1, 0 } };
		uint8_t changed[RTDIP_HEADER_BYTES];

		memcpy(changed, bytes, sizeof(bytes));
		changed[wrong[i].at] = wrong[i].value;
		if (i == 3)
			changed[0] = 0;
		CHECK_INT(rtdip_parse(changed, RTDIP_PAYLOAD_MAX_BYTES, &read), -EBADMSG);
	}
}

/* Numbers that a sender skipped are missing, unless they only were overtaken by a higher priority. */
static void test_missing(void)
{
	struct kernel_ring kernel;
	struct rtdip *handle = make_handle(&kernel, 64 * 1024);
	uint8_t data[RTDIP_DATA_MAX_BYTES];
	struct rtdip_message message;

	write_frame(&kernel, RTDIP_LOW, 1, 10);
	write_frame(&kernel, RTDIP_LOW, 2, 10);
	write_frame(&kernel, RTDIP_HIGH, 3, 10);
	write_frame(&kernel, RTDIP_LOW, 7, 10);
	for (int i = 0; i < 4; i++)
		CHECK_INT(take_first(handle, &message, data, sizeof(data)), 0);
	CHECK_INT(handle->counts.missing, 3);
	CHECK_INT(take_first(handle, &message, data, sizeof(data)), -EAGAIN);
	free_handle(handle, &kernel);
}

static int64_t heard(struct numbers *numbers, uint16_t from_port, enum rtdip_priority priority, uint32_t sequence)
{
	const struct rtdip_message message = {
		.from.port = from_port, .to_port = PORT, .priority = priority, .sequence = sequence,
	};

	return numbers_heard(numbers, &message);
}

/* What a sender lost stays counted whatever others do, and itself when it begins anew or a frame comes twice. */
static void test_missing_is_each_sender_s(void)
{
	struct numbers numbers = { 0 };
	int64_t missing = 0;

	missing += heard(&numbers, 1, RTDIP_LOW, 5000);
	missing += heard(&numbers, 1, RTDIP_LOW, 5004);
	CHECK_INT(missing, 3);
	missing += heard(&numbers, 1, RTDIP_LOW, 5004);
	CHECK_INT(heard(&numbers, 2, RTDIP_HIGH, 10), 0); /* overtook what is not known to be missing */
	for (uint32_t number = 5; number < 10; number++)
		missing += heard(&numbers, 2, RTDIP_LOW, number);
	for (uint32_t number = 0; number < 10; number++)
		missing += heard(&numbers, 1, RTDIP_LOW, number);
	CHECK_INT(missing, 3);
	missing += heard(&numbers, 1, RTDIP_LOW, 12);
	missing += heard(&numbers, 1, RTDIP_LOW, 11); /* on the way it was overtaken */
	CHECK_INT(missing, 4);
	CHECK_INT(heard(&numbers, 3, RTDIP_HIGH, UINT32_MAX), 0);
	CHECK_INT(heard(&numbers, 3, RTDIP_HIGH, 1), 1); /* 0 is */
	for (int i = 0; i < 2 * NUMBERS_PLACES_MAX; i++) { /* more senders than are kept */
		CHECK_INT(heard(&numbers, (uint16_t)(10 + i), RTDIP_HIGH, 0), 0);
		CHECK_INT(heard(&numbers, (uint16_t)(10 + i), RTDIP_HIGH, 2), 1);
	}
	CHECK_INT(heard(&numbers, 1, RTDIP_LOW, 20), 0);
}

/* A frame out of line, damaged or forged, counts nothing: the sender goes on where it was. */
static void test_a_frame_that_is_out_of_line(void)
{
	static const uint32_t wrong[] = { 0, 1, 500, 999, 100000, 1000 + UINT32_C(0x7fffffff), UINT32_C(0x80000000), UINT32_MAX };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct numbers numbers = { 0 };
		int64_t missing = 0;

		for (uint32_t number = 1000; number < 1040; number++) {
			missing += number == 1020 ? 0 : heard(&numbers, 1, RTDIP_HIGH, number);
			if (number == 1009 || number == 1019)
				missing += heard(&numbers, 1, RTDIP_HIGH, wrong[i]);
		}
		CHECK_THAT(missing == 1, "%" PRId64 " are missing after %" PRIu32, missing, wrong[i]);
	}
}

/* A sender that goes on far off is believed, and every loss is counted. */
static void test_a_sender_that_goes_on_far_off(void)
{
	struct numbers numbers = { 0 };
	int64_t missing = 0;

	missing += heard(&numbers, 1, RTDIP_HIGH, 10);
	missing += heard(&numbers, 1, RTDIP_HIGH, 300010);
	missing += heard(&numbers, 1, RTDIP_HIGH, 300013);
	CHECK_INT(missing, 299999 + 2);
	missing = heard(&numbers, 2, RTDIP_HIGH, 900000);
	missing += heard(&numbers, 2, RTDIP_HIGH, 0); /* begun anew */
	missing += heard(&numbers, 2, RTDIP_HIGH, 3);
	CHECK_INT(missing, 2);
}

/* A service whose answers are written before it is asked. */
static struct rtdip *handle_of_service(int *service)
{
	struct rtdip *handle = calloc(1, sizeof(*handle));
	int ends[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	handle->service = ends[0];
	*service = ends[1];
	handle->sending = handle->epoll = -1;
	return handle;
}

static void answer(int service, int result, uint32_t ring_bytes)
{
	struct rtdip_answer about = { .result = result, .ring_bytes = ring_bytes, .version = RTDIP_SERVICE_VERSION };
	struct iovec part = { &about, sizeof(about) };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int ring = -1;

	if (ring_bytes) {
		ring = memfd_create("ring", MFD_CLOEXEC);
		CHECK_INT(ftruncate(ring, 2 * sysconf(_SC_PAGESIZE) + 2 * (off_t)ring_bytes), 0);
		memcpy(CMSG_DATA(&control.header), &ring, sizeof(ring));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	CHECK_INT(sendmsg(service, &message, 0), sizeof(about));
	if (ring >= 0)
		close(ring);
}

/* What the service was asked next; -1: nothing. */
static int asked(int service)
{
	struct rtdip_request request;

	return recv(service, &request, sizeof(request), 0) == (ssize_t)sizeof(request) ? (int)request.verb : -1;
}

static void check_rooms(const struct rtdip *handle, size_t room)
{
	for (int i = 0; i < RTDIP_PRIORITIES; i++)
		CHECK_INT(handle->queues[i].room, room);
}

/* The queues have the room of the rings that there are, whatever was refused and given back before. */
static void test_queues_have_the_room_of_the_rings(void)
{
	const int errors[] = { EADDRINUSE, EACCES, ENOSPC };
	int service;
	struct rtdip *handle = handle_of_service(&service);

	for (int i = 0; i < 3; i++) {
		answer(service, -errors[i], 0);
		CHECK_INT(rtdip_bind(handle, PORT, RING_BYTES), -errors[i]);
		check_rooms(handle, 0);
		CHECK_INT(asked(service), RTDIP_BIND);
	}
	for (int round = 0; round < 3; round++) {
		for (int port = PORT; port < PORT + 2; port++) {
			answer(service, port, RING_BYTES);
			CHECK_INT(rtdip_bind(handle, (uint16_t)port, RING_BYTES), port);
			CHECK_INT(asked(service), RTDIP_BIND);
		}
		check_rooms(handle, (size_t)2 * RING_BYTES);
		for (int port = PORT; port < PORT + 2; port++) {
			answer(service, 0, 0);
			CHECK_INT(rtdip_unbind(handle, (uint16_t)port), 0);
			CHECK_INT(asked(service), RTDIP_UNBIND);
		}
		check_rooms(handle, 0);
	}
	rtdip_close(handle);
	close(service);
}

/* A size that no ring has is refused before anybody is asked, and never added up: a sum of 32 bits could wrap. */
static void test_sizes_that_no_ring_has(void)
{
	const uint32_t sizes[] = { 1, RTDIP_RING_MIN_BYTES / 2, RTDIP_RING_MIN_BYTES + 1, 2 * RTDIP_RING_MAX_BYTES, UINT32_MAX };
	int service;
	struct rtdip *handle = handle_of_service(&service);

	for (int i = 0; i < 5; i++) {
		CHECK_INT(rtdip_bind(handle, PORT, sizes[i]), -EINVAL);
		CHECK_INT(asked(service), -1);
		check_rooms(handle, 0);
	}
	rtdip_close(handle);
	close(service);
}

/* A ring that cannot be used is given back. */
static void test_a_ring_that_nobody_can_watch(void)
{
	int service;
	struct rtdip *handle = handle_of_service(&service);

	answer(service, PORT, RING_BYTES);
	answer(service, 0, 0);
	watch_error = ENOSPC;
	CHECK_INT(rtdip_bind(handle, PORT, RING_BYTES), -ENOSPC);
	watch_error = 0;
	CHECK_INT(asked(service), RTDIP_BIND);
	CHECK_INT(asked(service), RTDIP_UNBIND);
	CHECK_INT(handle->ring_count, 0);
	check_rooms(handle, 0);
	rtdip_close(handle);
	close(service);
}

/* What has come and is not read stays where it is while its port is given back; only then another can be bound. */
static void test_messages_that_wait(void)
{
	const uint8_t record[64] = { 0 };
	int service;
	struct rtdip *handle = handle_of_service(&service);

	answer(service, PORT, RING_BYTES);
	CHECK_INT(rtdip_bind(handle, PORT, RING_BYTES), PORT);
	CHECK_INT(asked(service), RTDIP_BIND);
	CHECK(queue_put(&handle->queues[RTDIP_LOW], record, sizeof(record)));
	CHECK_INT(rtdip_bind(handle, PORT + 1, RING_BYTES), -EBUSY);
	CHECK_INT(asked(service), -1);
	answer(service, 0, 0);
	CHECK_INT(rtdip_unbind(handle, PORT), 0);
	CHECK_INT(asked(service), RTDIP_UNBIND);
	CHECK(queue_oldest(&handle->queues[RTDIP_LOW]) != NULL);
	CHECK_INT(handle->queues[RTDIP_HIGH].room, 0);
	queue_take(&handle->queues[RTDIP_LOW], sizeof(record));
	answer(service, PORT, RING_BYTES);
	CHECK_INT(rtdip_bind(handle, PORT, RING_BYTES), PORT);
	check_rooms(handle, RING_BYTES);
	rtdip_close(handle);
	close(service);
}

/* Each frame that was delivered to a port is received or unheard, also when the port is given back with some in its ring. */
static void test_frames_of_a_port_that_is_given_back(void)
{
	struct kernel_ring kernel;
	struct rtdip *handle = make_handle(&kernel, RING_BYTES);
	uint8_t data[RTDIP_DATA_MAX_BYTES];
	struct rtdip_message message;
	int ends[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	handle->service = ends[0];
	handle->sending = handle->epoll = -1;
	handle->rings[0].descriptor = dup(ends[0]); /* of a ring of its own, which is closed with it */
	for (uint32_t i = 0; i < 5; i++) {
		CHECK(write_frame(&kernel, RTDIP_LOW, i, 10));
		if (i == 1)
			CHECK_INT(take_first(handle, &message, data, sizeof(data)), 0);
	}
	answer(ends[1], 0, 0);
	CHECK_INT(rtdip_unbind(handle, PORT), 0);
	while (take_first(handle, &message, data, sizeof(data)) == 0)
		;
	CHECK_INT(handle->counts.received, 2);
	CHECK_INT(handle->counts.unheard, 3);
	rtdip_close(handle);
	close(ends[1]);
}

static void test_no_handle(void)
{
	struct rtdip *handle = (void *)&handle;

	CHECK_INT(rtdip_open("/nowhere", 0, &handle), -ENOENT);
	CHECK(!handle);
	rtdip_close(handle);
}

int main(void)
{
	test_frames_of_a_port_that_is_given_back();
	test_no_handle();
	test_queues_have_the_room_of_the_rings();
	test_sizes_that_no_ring_has();
	test_a_ring_that_nobody_can_watch();
	test_messages_that_wait();
	test_header();
	test_order();
	test_low_frames_never_delay_a_high_one();
	test_a_record_that_is_being_written();
	test_missing();
	test_missing_is_each_sender_s();
	test_a_frame_that_is_out_of_line();
	test_a_sender_that_goes_on_far_off();
	return check_result();
}
