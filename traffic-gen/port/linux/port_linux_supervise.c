/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: a subreaper, which inherits what the program leaves behind, and signalfd. */
#define _GNU_SOURCE /* pipe2, ppoll */
#include "port/port_supervise.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"
#include "port/port.h"

#define TCP_LISTENS 0x0aU

/* A shell whose command a signal has ended has that exit code and the signal's number. */
enum { ROUNDS_MAX = 1000, LINE_BYTES = 512, SHELL_SIGNALS = 128 };

static void own_signals(sigset_t *mask)
{
	sigemptyset(mask);
	sigaddset(mask, SIGTERM);
	sigaddset(mask, SIGINT);
	sigaddset(mask, SIGHUP);
	sigaddset(mask, SIGCHLD);
}

int port_supervise_open(struct supervised *supervised)
{
	sigset_t mask;

	*supervised = (struct supervised){ .signals = -1, .in = -1, .out = -1, .err = -1, .commanded = true };
	own_signals(&mask);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1L) || sigprocmask(SIG_BLOCK, &mask, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	supervised->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return supervised->signals < 0 ? -errno : 0;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void port_supervise_close(struct supervised *supervised)
{
	port_supervise_end_all(supervised);
	close_one(&supervised->in);
	close_one(&supervised->out);
	close_one(&supervised->err);
	close_one(&supervised->signals);
}

/* In the child: only what is safe there. */
static void run_program(char **argv, const int *in, const int *out, const int *err, const int *failed, pid_t parent)
{
	sigset_t mask;
	int null = -1, code;

	own_signals(&mask);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL);
	if (getppid() != parent)
		_exit(127);
	if (in[0] < 0)
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (dup2(in[0] >= 0 ? in[0] : null, 0) >= 0 && dup2(out[1], 1) >= 0 && dup2(err[1], 2) >= 0)
		execvp(argv[0], argv);
	code = errno;
	if (write(failed[1], &code, sizeof(code)) != (ssize_t)sizeof(code))
		_exit(126);
	_exit(127);
}

int port_supervise_start(struct supervised *supervised, char **argv, bool takes_commands)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, failed[2] = { -1, -1 };
	int code = 0;
	pid_t pid = -1, own = getpid();

	if ((takes_commands && pipe2(in, O_CLOEXEC)) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		code = -errno;
	if (!code)
		pid = fork();
	if (!code && pid < 0)
		code = -errno;
	if (!pid)
		run_program(argv, in, out, err, failed, own);
	close_one(&in[0]);
	close_one(&out[1]);
	close_one(&err[1]);
	close_one(&failed[1]);
	if (!code) {
		int why;

		if (read(failed[0], &why, sizeof(why)) == (ssize_t)sizeof(why)) {
			code = -why;
			waitpid(pid, NULL, 0);
		}
	}
	close_one(&failed[0]);
	if (code) {
		close_one(&in[1]);
		close_one(&out[0]);
		close_one(&err[0]);
		return code;
	}
	supervised->pid = pid;
	supervised->in = in[1];
	supervised->out = out[0];
	supervised->err = err[0];
	return 0;
}

/* Take the ends of the program and of orphans. Returns whether the program has ended now. */
static bool take_ended(struct supervised *supervised)
{
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != supervised->pid || supervised->has_ended)
			continue;
		supervised->has_ended = ended = true;
		supervised->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
		supervised->end_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		supervised->by_request = supervised->end_signal == SIGTERM || supervised->exit_code == SHELL_SIGNALS + SIGTERM;
	}
	return ended;
}

/* Read all signals that have come. Returns SUPERVISE_ENDED, SUPERVISE_STOP, or SUPERVISE_TIME where there was nothing of note. */
static int take_signals(struct supervised *supervised)
{
	struct signalfd_siginfo info;
	bool stop = false;

	while (read(supervised->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		stop |= info.ssi_signo != SIGCHLD;
	if (take_ended(supervised))
		return SUPERVISE_ENDED;
	return stop ? SUPERVISE_STOP : SUPERVISE_TIME;
}

static bool has_come(const struct pollfd *poll)
{
	return poll->fd >= 0 && (poll->revents & (POLLIN | POLLHUP | POLLERR));
}

int port_supervise_wait(struct supervised *supervised, int64_t deadline_monotonic_ns)
{
	for (;;) {
		struct pollfd polls[] = {
			{ .fd = supervised->out, .events = POLLIN }, { .fd = supervised->err, .events = POLLIN },
			{ .fd = supervised->signals, .events = POLLIN }, { .fd = supervised->commanded ? 0 : -1, .events = POLLIN },
		};
		int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S), .tv_nsec = (long)(left_ns % NS_PER_S) };
		int found;

		if (left_ns <= 0)
			return SUPERVISE_TIME;
		found = ppoll(polls, sizeof(polls) / sizeof(polls[0]), &left, NULL);
		if (found < 0 && errno != EINTR)
			return -errno;
		/* What the program has said comes before its end. */
		if (has_come(&polls[0]))
			return SUPERVISE_OUT;
		if (has_come(&polls[1]))
			return SUPERVISE_ERR;
		if (has_come(&polls[2])) {
			int event = take_signals(supervised);

			if (event != SUPERVISE_TIME)
				return event;
		}
		if (has_come(&polls[3]))
			return SUPERVISE_COMMAND;
	}
}

int64_t port_supervise_read(struct supervised *supervised, enum supervise_event event, void *data, size_t size_bytes)
{
	int *fd = event == SUPERVISE_OUT ? &supervised->out : &supervised->err;
	ssize_t got = read(event == SUPERVISE_COMMAND ? 0 : *fd, data, size_bytes);

	if (got < 0)
		return -errno;
	if (!got && event == SUPERVISE_COMMAND)
		supervised->commanded = false;
	else if (!got)
		close_one(fd);
	return got;
}

int port_supervise_tell(struct supervised *supervised, const char *text, size_t size_bytes)
{
	while (size_bytes) {
		ssize_t put = write(supervised->in, text, size_bytes);

		if (put < 0)
			return -errno;
		text += put;
		size_bytes -= (size_t)put;
	}
	return 0;
}

void port_supervise_tell_end(struct supervised *supervised)
{
	close_one(&supervised->in);
}

void port_supervise_ask_end(const struct supervised *supervised)
{
	if (supervised->pid && !supervised->has_ended)
		kill(-(pid_t)supervised->pid, SIGTERM);
}

/* Send SIGKILL to each child of this process: what the program has started becomes one when its parent ends. */
static void kill_children(void)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		char path[LINE_BYTES], line[LINE_BYTES];
		const char *after;
		FILE *file;
		long pid = strtol(entry->d_name, NULL, 10), parent;

		if (pid <= 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
		file = fopen(path, "re");
		if (!file)
			continue;
		/* The name may hold blanks and brackets: what follows the last one is the state and the parent. */
		after = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
		if (after && sscanf(after + 1, " %*c %ld", &parent) == 1 && parent == (long)getpid())
			kill((pid_t)pid, SIGKILL);
		fclose(file);
	}
	if (folder)
		closedir(folder);
}

int port_supervise_end_all(struct supervised *supervised)
{
	if (supervised->pid && !supervised->has_ended)
		kill(-(pid_t)supervised->pid, SIGKILL);
	for (int round = 0; round < ROUNDS_MAX; round++) {
		siginfo_t info;

		take_ended(supervised);
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD)
			return 0;
		kill_children();
		port_sleep_ns(NS_PER_MS);
	}
	return -EBUSY;
}

static bool is_bound(const char *table, int port, bool tcp)
{
	FILE *file = fopen(table, "re");
	char line[LINE_BYTES];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		unsigned int local, state;

		found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 && local == (unsigned int)port &&
			(!tcp || state == TCP_LISTENS);
	}
	if (file)
		fclose(file);
	return found;
}

bool port_supervise_is_bound(int port, bool tcp)
{
	return is_bound(tcp ? "/proc/self/net/tcp" : "/proc/self/net/udp", port, tcp) ||
	       is_bound(tcp ? "/proc/self/net/tcp6" : "/proc/self/net/udp6", port, tcp);
}

bool port_supervise_is_file(const char *path)
{
	struct stat info;

	return !stat(path, &info);
}

int port_supervise_enter(const char *folder)
{
	char own[LINE_BYTES];

	if (chdir(folder))
		return -errno;
	return getcwd(own, sizeof(own)) ? port_supervise_set("TMPDIR", own) : -errno;
}

int port_supervise_set(const char *name, const char *value)
{
	return setenv(name, value, 1) ? -errno : 0;
}
