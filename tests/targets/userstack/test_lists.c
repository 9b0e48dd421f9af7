/* SPDX-License-Identifier: Apache-2.0 */
/** How the service of the user-mode stack takes the kernel's list of addresses; the test is the kernel. */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "check.h"
#include "service/port_netlink.h"

enum { INTERFACE = 7, PART_BYTES = 1024, PATIENCE_LISTS = 1000 };

/* What the kernel says: a list of one address each, the interrupted ones first, then how it ends. */
static struct {
	int interrupted, with_address; /* lists; whether what is interrupted says so with the address, or where it ends */
	int result;                    /* where the list ends */
	uint8_t host;                  /* of the address */
} kernel;

static uint32_t asked_number; /* of the last request */
static int lists, parts;      /* that were asked for, that the kernel has said of the last */

/* In the place of the C library's. */
ssize_t send(int socket, const void *data, size_t bytes, int flags)
{
	(void)socket;
	(void)flags;
	asked_number = ((const struct nlmsghdr *)data)->nlmsg_seq;
	CHECK(lists < PATIENCE_LISTS);
	lists++;
	parts = 0;
	return (ssize_t)bytes;
}

static ssize_t say(void *part, uint16_t type, bool interrupted, const void *body, size_t bytes)
{
	struct nlmsghdr *message = part;

	*message = (struct nlmsghdr){
		.nlmsg_len = (uint32_t)NLMSG_LENGTH(bytes), .nlmsg_type = type, .nlmsg_seq = asked_number,
		.nlmsg_flags = (uint16_t)(NLM_F_MULTI | (interrupted ? NLM_F_DUMP_INTR : 0)),
	};
	memcpy(NLMSG_DATA(message), body, bytes);
	return (ssize_t)NLMSG_SPACE(bytes);
}

static ssize_t say_address(void *part, bool interrupted)
{
	struct {
		struct ifaddrmsg head;
		struct rtattr attribute;
		uint8_t ip[4];
	} body = {
		.head = { .ifa_family = AF_INET, .ifa_index = INTERFACE },
		.attribute = { .rta_type = IFA_LOCAL, .rta_len = RTA_LENGTH(4) },
		.ip = { 10, 0, 0, kernel.host },
	};

	return say(part, RTM_NEWADDR, interrupted, &body, sizeof(body));
}

ssize_t recv(int socket, void *part, size_t size, int flags)
{
	bool interrupted = lists <= kernel.interrupted;

	(void)socket;
	(void)flags;
	CHECK(size >= PART_BYTES);
	if (parts++ == 0)
		return say_address(part, interrupted && kernel.with_address);
	return say(part, NLMSG_DONE, interrupted && !kernel.with_address, &kernel.result, sizeof(kernel.result));
}

/* Ask for the addresses. Return how many there are, or -errno. */
static int count(struct path_address addresses[PATH_ADDRESSES])
{
	lists = 0;
	return netlink_addresses(0, INTERFACE, addresses);
}

static void test_a_list_is_taken(void)
{
	struct path_address addresses[PATH_ADDRESSES];

	kernel = (typeof(kernel)){ .host = 5 };
	CHECK_INT(count(addresses), 1);
	CHECK_INT(addresses[0].ip[3], 5);
	CHECK_INT(lists, 1);
}

/* What was not whole leaves nothing behind. */
static void test_a_list_that_changed_meanwhile_is_asked_for_again(void)
{
	struct path_address addresses[PATH_ADDRESSES];

	for (int with_address = 0; with_address <= 1; with_address++) {
		kernel = (typeof(kernel)){ .interrupted = 3, .with_address = with_address, .host = 6 };
		CHECK_INT(count(addresses), 1);
		CHECK_INT(addresses[0].ip[3], 6);
		CHECK_INT(lists, 4);
	}
}

static void test_a_list_that_always_changes_ends(void)
{
	struct path_address addresses[PATH_ADDRESSES];

	kernel = (typeof(kernel)){ .interrupted = PATIENCE_LISTS };
	CHECK_INT(count(addresses), -EINTR);
}

static void test_an_error_may_stand_where_a_list_ends(void)
{
	struct path_address addresses[PATH_ADDRESSES];

	kernel = (typeof(kernel)){ .result = -ENOBUFS };
	CHECK_INT(count(addresses), -ENOBUFS);
	CHECK_INT(lists, 1);
}

int main(void)
{
	test_a_list_is_taken();
	test_a_list_that_changed_meanwhile_is_asked_for_again();
	test_a_list_that_always_changes_ends();
	test_an_error_may_stand_where_a_list_ends();
	return check_result();
}
