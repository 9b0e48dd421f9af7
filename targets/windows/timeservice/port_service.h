/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: a service of Windows: made, removed, started and stopped through the service control manager, and run by it. The
 * service runs as NT AUTHORITY\LocalService with no privilege but that of walking through folders; its folder is written by it and by
 * administrators alone, and read by all. Functions return 0 or the system's error code.
 */
#ifndef BW_WINDOWS_PORT_SERVICE_H
#define BW_WINDOWS_PORT_SERVICE_H

#include <stdbool.h>

enum { SERVICE_TEXT_BYTES = 8192 };

struct service_facts {
	const char *name;         /* "bw-timed" */
	const char *shown;        /* name for people */
	const char *about;
	const char *arguments;    /* of the service's own command line, quoted as needed */
};

/** Make the service, start it at boot; one that is there is given the new command line. */
unsigned long port_service_install(const struct service_facts *facts);
/** Stop it and remove it. */
unsigned long port_service_uninstall(const char *name);
/** Start it, and wait until it runs. */
unsigned long port_service_start(const char *name);
/** Stop it, and wait until it has ended. */
unsigned long port_service_stop(const char *name);

/**
 * Make a folder, with its parents, that everybody reads and only administrators and a service write to.
 *
 * @param service  its name
 */
unsigned long port_service_folder(const char *path, const char *service);

/** What the service does, between being told to start and its end. @return an exit code */
typedef int service_body(int argc, char **argv);
/** Whether the system is to start the service again after an exit code. */
typedef bool service_again(int code);

/**
 * Be the service: for what the service control manager has started. Stop and shutdown set the event that ends this process's waiter,
 * controls 128 and 129 those of hold and listen; beginning and end go to the event log. After an end that a new start can cure the
 * process ends here, without a word to the service control manager, which starts it again.
 *
 * @param argv  of this process; the body gets it
 */
unsigned long port_service_run(const char *name, service_body *body, service_again *again, int argc, char **argv);

/** Words of the system for an error code. @return text */
char *port_service_error(unsigned long code, char *text, int size_bytes);

#endif
