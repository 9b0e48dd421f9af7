/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of BPF end with the service, but the veths would stay as long as a program has its socket of AF_XDP, which holds the
 * namespace. So a process waits for the service's end, however that comes, and removes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/port_netlink.h"
#include "service/port_service.h"

struct veth_of_slot {
	uint32_t slot;
	int interface_index;
};

static void wait_and_remove(int notes)
{
	int veths[PATH_SLOTS] = { 0 }, netlink = netlink_open(false);
	struct veth_of_slot note;
	ssize_t bytes;

	do {
		bytes = read(notes, &note, sizeof(note));
		if (bytes == (ssize_t)sizeof(note))
			veths[note.slot % PATH_SLOTS] = note.interface_index;
	} while (bytes > 0 || (bytes < 0 && errno == EINTR));
	for (int slot = 0; slot < PATH_SLOTS; slot++) {
		if (veths[slot] && netlink >= 0)
			netlink_delete_interface(netlink, veths[slot]); /* numbers are never used again */
	}
}

int guard_begin(void)
{
	int notes[2];
	sigset_t all;
	pid_t child;

	if (pipe2(notes, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child > 0) {
		close(notes[0]);
		return notes[1];
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "bw-stackd-guard");
	dup2(notes[0], STDIN_FILENO);
	close_range(STDIN_FILENO + 1, ~0U, 0); /* whoever reads the service's output is not to wait for this process */
	wait_and_remove(STDIN_FILENO);
	_exit(0);
}

void guard_end(int guard)
{
	close(guard);
	wait(NULL);
}

void guard_tell(int guard, uint32_t slot, int interface_index)
{
	const struct veth_of_slot note = { slot, interface_index };

	if (write(guard, &note, sizeof(note)) < 0) {
		/* It was killed: the next service removes what this one leaves. */
	}
}
