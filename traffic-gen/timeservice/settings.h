/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the time service: the defaults, a file (TOML), and the command line, each over the one before. */
#ifndef BW_TIMESERVICE_SETTINGS_H
#define BW_TIMESERVICE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeservice/estimate.h"
#include "timeservice/publish.h"
#include "timeservice/select.h"
#include "timeservice/server.h"

#define TIMED_TOOL "bw-timed"

enum { SETTINGS_PATH_BYTES = 512, SETTINGS_ERROR_BYTES = 512 };

enum settings_feed { FEED_NONE, FEED_KERNEL, FEED_CHRONY };

/** Their names, in this order, and NULL. */
extern const char *const SETTINGS_FEEDS[];

struct settings {
	struct server_settings servers[SELECT_MAX];
	int server_count;
	int64_t interval_ms;        /* from batch to batch */
	int64_t batch;              /* exchanges of a batch */
	int64_t gap_us;             /* from exchange to exchange */
	int64_t timeout_ms;         /* for an answer */
	int64_t quick_batches, quick_interval_ms; /* at the start, and after a contradiction */
	int64_t confirm_batches;    /* so many batches that agree before a server is believed */
	int64_t check_interval_ms;  /* one exchange between batches; 0: none */
	int64_t min_servers;        /* so many have to agree */
	int64_t batches_max;        /* end after so many; 0: at the end of the process */
	int64_t tai_utc_s;          /* 0: what the kernel says; once the service runs: nobody has told */
	int64_t priority;           /* SCHED_FIFO; 0: none */
	int64_t feed;               /* enum settings_feed */
	int64_t feed_unit;          /* of chrony's SHM refclock */
	struct estimate_settings estimate;
	struct publish_settings publish;
	bool no_interleave, user_stamps; /* of all servers */
	bool log_exchanges;         /* all that the time is computed from goes into the log */
	bool any_counter;           /* use one that promises no constant rate, or that the kernel does not trust */
	char page[SETTINGS_PATH_BYTES], log[SETTINGS_PATH_BYTES]; /* empty: the system's place, stdout */
	char key_file[SETTINGS_PATH_BYTES];                       /* of the keys that servers name; empty: none does */
};

/* A number that the command line and the file have in common; the file's key has '_' for '-'. */
struct settings_number {
	const char *name;
	size_t offset; /* of the int64_t in struct settings */
	int64_t min, max;
	const char *help;
};

enum { SETTINGS_NUMBERS = 18 };

extern const struct settings_number SETTINGS_NUMBER[SETTINGS_NUMBERS];

static inline int64_t *settings_number(struct settings *settings, int index)
{
	return (int64_t *)((char *)settings + SETTINGS_NUMBER[index].offset);
}

struct settings settings_default(void);

/**
 * Read a file over what is there.
 *
 * @param error  receives one line, "FILE:LINE: [service]: interval_ms: …"
 * @return 0, or -errno
 */
int settings_read_file(struct settings *settings, const char *path, char error[SETTINGS_ERROR_BYTES]);

/** Like settings_read_file, from memory; path names the text in errors. */
int settings_read_text(struct settings *settings, const char *path, const char *text, size_t length,
		       char error[SETTINGS_ERROR_BYTES]);

/**
 * Add a server: "ADDRESS[:PORT][,KEY=VALUE…]".
 *
 * @return 0, or -EINVAL with error filled
 */
int settings_add_server(struct settings *settings, const char *text, char error[SETTINGS_ERROR_BYTES]);

/** Read a command line. @return -1: go on; or the exit code, one line was written to stderr */
int settings_parse(struct settings *settings, int argc, char **argv);

#endif
