/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: this process: its arguments, its rights, where it keeps its state, and who else runs. */
#ifndef BW_WINDOWS_PORT_PROCESS_H
#define BW_WINDOWS_PORT_PROCESS_H

#include <stdbool.h>

#include "port_file.h"

enum { ARGUMENTS_MAX = 8, ARGUMENT_BYTES = 512 };

/** Arguments in UTF-8: a name of an adapter is in the language of the system. @return their number, -1 for too many */
int process_arguments(char arguments[ARGUMENTS_MAX][ARGUMENT_BYTES]);
/** Write line ends as they are. */
void process_print_binary(void);
bool process_is_administrator(void);
/** Path of a file beside this program. @return false where it cannot be named */
bool process_file_beside(const char *name, char path[PATH_BYTES]);
/** Make the folder of the state, %BENCHWRIGHT_STATE% or %ProgramFiles%\Benchwright\state. @return false: none can be named */
bool process_state_folder(char *folder, int size);

enum process_lock { LOCK_HELD, LOCK_BUSY, LOCK_FAILED };

/** Take the lock on a file, which this process then holds to its end; wait for 10 s where another one holds it. */
enum process_lock process_lock_take(const char *path);

#endif
