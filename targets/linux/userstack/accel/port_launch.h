/* SPDX-License-Identifier: Apache-2.0 */
/* What bw-accel asks of the system: which file a program is, whether it has rights of its own, whether the service answers. */
#ifndef BW_ACCEL_PORT_LAUNCH_H
#define BW_ACCEL_PORT_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

enum { LAUNCH_PATH_BYTES = 4096 };

/**
 * Find a program as execvp(3) does: by PATH, unless its name has a slash.
 *
 * @return 0, -ENOENT, -EACCES (it is there, and no file that may be executed) or -ENAMETOOLONG
 */
int launch_find(const char *name, char path[LAUNCH_PATH_BYTES]);

/** What lets a program have other rights than who starts it, so that its loader ignores LD_PRELOAD; NULL: nothing. */
const char *launch_rights_of(const char *path);

/** Make a path absolute, without links. @return 0 or -errno (-ENOENT: no such file) */
int launch_absolute(const char *path, char absolute[LAUNCH_PATH_BYTES]);

/** The folder that this program's file is in. @return 0 or -errno */
int launch_own_folder(char folder[LAUNCH_PATH_BYTES]);

/** Whether somebody serves a local socket. @return 0 or -errno (-ENAMETOOLONG: no path of a socket) */
int launch_ask_service(const char *path);

/** Set a variable of the environment. @return 0 or -errno */
int launch_set_variable(const char *name, const char *value);

/** Become a program. @return -errno: it did not start */
int launch_run(const char *path, char **argv);

#endif
