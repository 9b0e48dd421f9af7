/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose child serves the connection under a filter for system calls, as sshd's before a login: `userstack-sandboxed ADDRESS
 * HOW`. The child ends by SIGSYS for any call but those of reading, writing and waiting. HOW: `unused` (the filter comes before
 * anything is read), `used`, `waits` (by poll), `listens` (it has the listener still), `itself` (the server's own
 * process). Prints how the child has ended. For test_accel_seccomp.py.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call_check.h"

enum { PORT = 5001, CALLS_MAX = 64 };

/* Those of OpenSSH's sandbox that machines have in common, and what newer ones have left out. */
static const int allowed[] = {
	SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_exit, SYS_exit_group, SYS_futex, SYS_getpid, SYS_getrandom,
	SYS_gettid, SYS_gettimeofday, SYS_madvise, SYS_mremap, SYS_munmap, SYS_nanosleep, SYS_ppoll, SYS_pselect6, SYS_read,
	SYS_rt_sigprocmask, SYS_shutdown, SYS_write,
#ifdef SYS_mmap
	SYS_mmap,
#endif
#ifdef SYS_mmap2
	SYS_mmap2,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_select
	SYS_select,
#endif
#ifdef SYS__newselect
	SYS__newselect,
#endif
#ifdef SYS_clock_gettime64
	SYS_clock_gettime64, SYS_futex_time64, SYS_ppoll_time64,
#endif
};

static void install_filter(void)
{
	enum { ALLOWED = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[CALLS_MAX];
	unsigned short count = 0;
	struct sock_fprog program = { .filter = code };

	code[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < ALLOWED; i++)
		code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)allowed[i], (unsigned char)(ALLOWED - i), 0);
	code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = count;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Answer each piece with itself, until the peer ends. */
static void serve(int connection, int datagrams, const char *how)
{
	struct pollfd polled = { .fd = connection, .events = POLLIN };
	char piece[100];
	ssize_t length;

	if (strcmp(how, "used") == 0) {
		CHECK(read(connection, piece, 1) == 1);
		CHECK(write(connection, piece, 1) == 1);
	}
	install_filter();
	close(datagrams);
	for (;;) {
		if (strcmp(how, "waits") == 0 && poll(&polled, 1, -1) != 1)
			_exit(2);
		length = read(connection, piece, sizeof(piece));
		if (length <= 0)
			break;
		if (write(connection, piece, (size_t)length) != length)
			_exit(3);
	}
	shutdown(connection, SHUT_WR);
	close(connection);
	_exit(length == 0 ? 0 : 4);
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0), connection, status = 0;
	const int on = 1;

	CHECK(argc == 3 && inet_pton(AF_INET, argv[1], &own.sin_addr) == 1);
	CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	CHECK(bind(listener, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(listener, 1) == 0);
	puts("ready");
	fflush(stdout);
	connection = accept(listener, NULL, NULL);
	CHECK(connection >= 0);
	CHECK(bind(datagrams, (struct sockaddr *)&own, sizeof(own)) == 0);
	if (strcmp(argv[2], "itself") == 0 || fork() == 0) {
		if (strcmp(argv[2], "listens") != 0)
			close(listener);
		serve(connection, datagrams, argv[2]);
	}
	close(connection);
	CHECK(wait(&status) > 0);
	printf("exit code %d, signal %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}
