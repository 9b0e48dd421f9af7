/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: a program between pairs of sockets, which are non-blocking here and ordinary there. */
#define _GNU_SOURCE
#include "port/port_child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void close_one(port_socket *sock)
{
	if (*sock != PORT_SOCKET_NONE)
		close((int)*sock);
	*sock = PORT_SOCKET_NONE;
}

/* Return 0 or a positive errno. */
static int spawn(pid_t *pid, char *const *argv, int in, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		sigemptyset(&defaults);
		sigaddset(&defaults, SIGPIPE);
		posix_spawnattr_setsigdefault(&attributes, &defaults);
		posix_spawnattr_setpgroup(&attributes, 0);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
		err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
		if (!err)
			err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
		if (!err)
			err = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

int port_child_start(struct port_child *child, char *const *argv, bool is_read)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err = 0;
	pid_t pid = 0;

	*child = (struct port_child){ .in = PORT_SOCKET_NONE, .out = PORT_SOCKET_NONE };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) || (is_read && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out)))
		err = errno;
	if (!err)
		err = spawn(&pid, argv, in[1], is_read ? out[1] : STDERR_FILENO);
	if (in[1] >= 0)
		close(in[1]);
	if (out[1] >= 0)
		close(out[1]);
	child->in = in[0];
	if (is_read)
		child->out = out[0];
	if (err) {
		close_one(&child->in);
		close_one(&child->out);
		return -err;
	}
	child->pid = pid;
	return 0;
}

bool port_child_has_ended(struct port_child *child, int *exit_code)
{
	int status;

	if (!child->pid || waitpid((pid_t)child->pid, &status, WNOHANG) != (pid_t)child->pid)
		return false;
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	kill((pid_t)-child->pid, SIGKILL); /* what it has left behind */
	child->pid = 0;
	return true;
}

void port_child_end(struct port_child *child)
{
	if (child->pid) {
		kill((pid_t)-child->pid, SIGKILL);
		while (waitpid((pid_t)child->pid, NULL, 0) < 0 && errno == EINTR)
			;
		child->pid = 0;
	}
}
