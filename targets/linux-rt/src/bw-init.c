/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-init - PID 1 of a bench guest, and its poweroff, reboot and halt
 *
 * As PID 1: runs the boot script once, says `benchwright: ready` (or `benchwright: boot failed`) on the console,
 * reaps orphans, and ends the machine on a signal, on Ctrl-Alt-Del or when the ACPI power button is pressed (QMP
 * system_powerdown).
 *
 * Under the name poweroff, reboot or halt: with -f ends the machine at once, even if PID 1 hangs; without it asks
 * PID 1 to. Either way sessions are closed first, so that an SSH client on the other side is not left hanging.
 *
 * System program: process 1 of a guest, which starts, reaps and reboots by calls of Linux.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BOOT_SCRIPT "/usr/lib/benchwright/boot.sh"
#define INPUT_DIRECTORY "/dev/input"
#define BUTTONS_MAX 8
/* Time that processes get between SIGTERM and SIGKILL. */
#define TERMINATION_GRACE_MS 2000
#define TERMINATION_STEP_MS 20
/* Time for sshd to close its connections before a forced end. */
#define FORCED_GRACE_MS 200

struct ending {
	const char *name;
	int signal_number;
	int command;
};

static const struct ending endings[] = {
	{ "poweroff", SIGUSR2, RB_POWER_OFF },
	{ "reboot", SIGTERM, RB_AUTOBOOT },
	{ "halt", SIGUSR1, RB_HALT_SYSTEM },
	{ "ctrl-alt-del", SIGINT, RB_AUTOBOOT },
};

#define ENDINGS (sizeof(endings) / sizeof(endings[0]))

static void console_say(const char *text)
{
	int fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return;
	while (write(fd, text, strlen(text)) < 0 && errno == EINTR)
		;
	close(fd);
}

static void sleep_ms(long duration_ms)
{
	struct timespec duration = { duration_ms / 1000, duration_ms % 1000 * 1000000L };

	nanosleep(&duration, NULL);
}

/* End every process, flush what is written, leave. Returns only if the kernel refuses, with -errno. */
static int machine_end(int command)
{
	kill(-1, SIGTERM);
	for (int waited_ms = 0; waited_ms < TERMINATION_GRACE_MS; waited_ms += TERMINATION_STEP_MS) {
		pid_t pid;

		do {
			pid = waitpid(-1, NULL, WNOHANG);
		} while (pid > 0);
		if (pid < 0 && errno == ECHILD)
			break;
		sleep_ms(TERMINATION_STEP_MS);
	}
	kill(-1, SIGKILL);
	sync();
	reboot(command);
	return -errno;
}

/* The same without PID 1 and without waiting for processes that linger. Returns only if the kernel refuses. */
static void machine_end_forced(int command)
{
	signal(SIGHUP, SIG_IGN); /* The session that this program belongs to ends first. */
	signal(SIGPIPE, SIG_IGN);
	kill(-1, SIGTERM);
	sleep_ms(FORCED_GRACE_MS);
	sync();
	reboot(command);
}

/* Start the boot script with the signal mask that programs expect. Returns its pid or -errno. */
static pid_t boot_start(const sigset_t *original)
{
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	setsid();
	sigprocmask(SIG_SETMASK, original, NULL);
	fd = open("/dev/null", O_RDONLY);
	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
	fd = open("/dev/console", O_WRONLY | O_NOCTTY);
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
	}
	for (fd = STDERR_FILENO + 1; fd < 64; fd++)
		close(fd);
	execl(BOOT_SCRIPT, BOOT_SCRIPT, (char *)NULL);
	_exit(127);
}

/* Open all input devices: the only ones that a guest has are its buttons. Returns how many. */
static size_t buttons_open(struct pollfd *fds)
{
	DIR *directory = opendir(INPUT_DIRECTORY);
	struct dirent *entry;
	size_t count = 0;

	if (!directory)
		return 0;
	while (count < BUTTONS_MAX && (entry = readdir(directory))) {
		int fd;

		if (strncmp(entry->d_name, "event", 5) != 0)
			continue;
		fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		fds[count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	closedir(directory);
	return count;
}

static bool button_pressed(int fd)
{
	struct input_event event;

	while (read(fd, &event, sizeof(event)) == (ssize_t)sizeof(event))
		if (event.type == EV_KEY && event.code == KEY_POWER && event.value == 1)
			return true;
	return false;
}

/* Reap whatever ended. Returns true once `boot` is among it, with its wait status in `status`. */
static bool children_reap(pid_t boot, int *status)
{
	bool booted = false;
	int one;

	for (;;) {
		pid_t pid = waitpid(-1, &one, WNOHANG);

		if (pid <= 0)
			return booted;
		if (pid == boot) {
			*status = one;
			booted = true;
		}
	}
}

static void boot_announce(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		console_say("benchwright: ready\n");
	else
		console_say("benchwright: boot failed\n");
}

/* Handle one signal: reap, announce and open the buttons when the boot script ended, end the machine. */
static void signal_handle(int signal_number, pid_t *boot, struct pollfd *fds, nfds_t *watched)
{
	int status;

	if (signal_number == SIGCHLD) {
		if (children_reap(*boot, &status)) {
			*boot = 0;
			*watched = 1 + buttons_open(fds + 1);
			boot_announce(status);
		}
		return;
	}
	for (size_t i = 0; i < ENDINGS; i++)
		if (endings[i].signal_number == signal_number)
			machine_end(endings[i].command);
}

static int init_run(void)
{
	struct pollfd fds[1 + BUTTONS_MAX];
	struct signalfd_siginfo info;
	sigset_t mask, original;
	nfds_t watched = 1;
	pid_t boot;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaddset(&mask, endings[i].signal_number);
	sigprocmask(SIG_BLOCK, &mask, &original);
	reboot(RB_DISABLE_CAD); /* Ctrl-Alt-Del becomes SIGINT. */
	fds[0] = (struct pollfd){ .fd = signalfd(-1, &mask, SFD_CLOEXEC), .events = POLLIN };
	boot = boot_start(&original);
	if (fds[0].fd < 0 || boot < 0) {
		console_say("benchwright: boot failed: no signalfd or no process\n");
		return machine_end(RB_POWER_OFF);
	}
	for (;;) {
		if (poll(fds, watched, -1) < 0)
			continue;
		if ((fds[0].revents & POLLIN) && read(fds[0].fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			signal_handle((int)info.ssi_signo, &boot, fds, &watched);
		for (nfds_t i = 1; i < watched; i++)
			if ((fds[i].revents & POLLIN) && button_pressed(fds[i].fd))
				machine_end(RB_POWER_OFF);
	}
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	bool force = argc == 2 && strcmp(argv[1], "-f") == 0;

	if (getpid() == 1)
		return init_run();
	name = name ? name + 1 : argv[0];
	for (size_t i = 0; i < ENDINGS; i++) {
		if (strcmp(name, endings[i].name) != 0)
			continue;
		if (argc > 1 && !force)
			break;
		if (force) {
			machine_end_forced(endings[i].command);
		} else if (kill(1, endings[i].signal_number) == 0) {
			return 0;
		}
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return 1;
	}
	fprintf(stderr, "usage: poweroff|reboot|halt [-f]\n");
	return 2;
}
