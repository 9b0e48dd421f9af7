/* SPDX-License-Identifier: Apache-2.0 */
#include "port_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(LAUNCH_PATH_BYTES >= PATH_MAX, "realpath(3) writes so many");

/* Whether it can be executed. Return 0, -EACCES, or why there is no such file. */
static int is_program(const char *path)
{
	struct stat about;

	if (stat(path, &about))
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(about.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -EACCES;
	return 0;
}

static int join(char path[LAUNCH_PATH_BYTES], const char *folder, size_t folder_bytes, const char *name)
{
	/* An empty part of PATH is the current folder. */
	int length = snprintf(path, LAUNCH_PATH_BYTES, "%.*s%s%s", (int)folder_bytes, folder, folder_bytes ? "/" : "", name);

	return length < LAUNCH_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int find_by(const char *folders, const char *name, char path[LAUNCH_PATH_BYTES])
{
	int found = -ENOENT;

	for (;;) {
		size_t bytes = strcspn(folders, ":");
		int err = join(path, folders, bytes, name);

		err = err ? err : is_program(path);
		if (!err)
			return 0;
		if (err == -EACCES)
			found = err;
		if (!folders[bytes])
			return found;
		folders += bytes + 1;
	}
}

int launch_find(const char *name, char path[LAUNCH_PATH_BYTES])
{
	const char *folders = getenv("PATH");
	char usual[LAUNCH_PATH_BYTES];
	int err;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		err = join(path, "", 0, name);
		return err ? err : is_program(path);
	}
	if (!folders) {
		size_t bytes = confstr(_CS_PATH, usual, sizeof(usual));

		folders = bytes && bytes <= sizeof(usual) ? usual : "/bin:/usr/bin";
	}
	return find_by(folders, name, path);
}

const char *launch_rights_of(const char *path)
{
	struct stat about;

	if (stat(path, &about))
		return NULL;
	if (about.st_mode & S_ISUID)
		return "is set-user-ID";
	/* Without the right to execute, the bit is about locks. */
	if ((about.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return "is set-group-ID";
	return getxattr(path, "security.capability", NULL, 0) > 0 ? "has capabilities of its own (setcap)" : NULL;
}

int launch_absolute(const char *path, char absolute[LAUNCH_PATH_BYTES])
{
	return realpath(path, absolute) ? 0 : -errno;
}

int launch_own_folder(char folder[LAUNCH_PATH_BYTES])
{
	char path[LAUNCH_PATH_BYTES];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (bytes < 0)
		return -errno;
	path[bytes] = '\0';
	*strrchr(path, '/') = '\0';
	strcpy(folder, path);
	return 0;
}

int launch_ask_service(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	/* Not blocking: one whose queue is full answers, only not yet. */
	int fd, err = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) && errno != EAGAIN)
		err = -errno;
	close(fd);
	return err;
}

int launch_set_variable(const char *name, const char *value)
{
	return setenv(name, value, 1) ? -errno : 0;
}

int launch_run(const char *path, char **argv)
{
	execv(path, argv);
	return -errno;
}
