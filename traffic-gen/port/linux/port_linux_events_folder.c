/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: bw-events, folders of recordings and the programs that it starts. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/port_events.h"

#define MEMORY "/dev/shm"
#define PREFIX "bw-events-"

enum { SIGNALLED = 128, NOT_STARTED = 127 };

int port_events_change(const struct port_events_file *file)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int done;

	do
		done = fcntl((int)file->handle, F_SETLKW, &all);
	while (done && errno == EINTR);
	return done ? -errno : 0;
}

int port_events_list(const char *folder, port_events_name *name, void *sink)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	int err = 0;

	if (!entries)
		return -errno;
	while (!err && (errno = 0, entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = name(sink, entry->d_name);
	if (!err && errno)
		err = -errno;
	closedir(entries);
	return err;
}

int port_events_remove_folder(const char *path)
{
	return rmdir(path) ? -errno : 0;
}

bool port_events_is_own_folder(const char *path)
{
	struct stat status;

	return !lstat(path, &status) && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

int port_events_output(const char *path, char absolute[PORT_EVENTS_PATH_BYTES])
{
	char real[PATH_MAX];
	struct stat status;

	if (mkdir(path, 0777) && errno != EEXIST)
		return -errno;
	if (stat(path, &status))
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	if (access(path, W_OK | X_OK))
		return -errno;
	if (!realpath(path, real))
		return -errno;
	return snprintf(absolute, PORT_EVENTS_PATH_BYTES, "%s", real) < PORT_EVENTS_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

int port_events_make_folder(char path[PORT_EVENTS_PATH_BYTES])
{
	const char *folder, *prefix;

	port_events_places(&folder, &prefix);
	if (snprintf(path, PORT_EVENTS_PATH_BYTES, "%s/%sXXXXXX", folder, prefix) >= PORT_EVENTS_PATH_BYTES)
		return -ENAMETOOLONG;
	return mkdtemp(path) ? 0 : -errno;
}

void port_events_places(const char **folder_out, const char **prefix_out)
{
	const char *memory = secure_getenv("BW_EVENTS_MEMORY");

	*folder_out = memory && *memory ? memory : MEMORY;
	*prefix_out = PREFIX;
}

static void become(const char *folder, char **argv, int told)
{
	sigset_t none;
	int failed;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL); /* which port_init ignores */
	signal(SIGXFSZ, SIG_DFL);
	if (!setenv("BW_EVENTS", folder, 1))
		execvp(argv[0], argv);
	failed = errno;
	if (write(told, &failed, sizeof(failed)) < 0)
		_exit(NOT_STARTED + 1);
	_exit(NOT_STARTED);
}

int port_events_start(const char *folder, char **argv, int64_t *pid_out)
{
	int ends[2], failed = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		become(folder, argv, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		failed = errno;
		close(ends[0]);
		return -failed;
	}
	do /* ends without a byte once the program has taken the place of this one */
		got = read(ends[0], &failed, sizeof(failed));
	while (got < 0 && errno == EINTR);
	close(ends[0]);
	if (got == (ssize_t)sizeof(failed)) {
		waitpid(pid, NULL, 0);
		return -failed;
	}
	*pid_out = pid;
	return 0;
}

int port_events_ended(int64_t pid, int *code_out)
{
	int status;
	pid_t ended = waitpid((pid_t)pid, &status, WNOHANG);

	if (ended < 0)
		return -errno;
	if (!ended)
		return 0;
	*code_out = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
	return 1;
}

void port_events_terminate(int64_t pid)
{
	kill((pid_t)pid, SIGTERM);
}
