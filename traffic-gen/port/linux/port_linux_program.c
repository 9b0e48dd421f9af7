/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: programs that are started, and files on their way to the disk. */
#include "port/port_program.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time_units.h"

#define SELF "/proc/self/exe"

extern char **environ;

enum { SIGNALLED = 128 };

static int64_t timeval_ns(const struct timeval *time)
{
	return time->tv_sec * NS_PER_S + time->tv_usec * NS_PER_US;
}

int port_program_run_self(char *const *argv, int64_t *cpu_ns)
{
	struct rusage used;
	pid_t pid, ended;
	int status, err = posix_spawn(&pid, SELF, NULL, NULL, argv, environ);

	if (err)
		return -err;
	do
		ended = wait4(pid, &status, 0, &used);
	while (ended < 0 && errno == EINTR);
	if (ended < 0)
		return -errno;
	*cpu_ns = timeval_ns(&used.ru_utime) + timeval_ns(&used.ru_stime);
	return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

int port_file_sync(FILE *file)
{
	if (fflush(file) || fsync(fileno(file)))
		return -errno;
	return 0;
}
