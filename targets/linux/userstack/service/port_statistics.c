/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all programs are doing. The service asks them to write their pages and waits, by its loop, until all have or the time is up:
 * a round. Who asks while one runs gets the next one, so that nothing in an answer is older than the question.
 *
 * A page is a program's own, and may hold anything at any time. It is read, not mapped, into a copy, and the copy is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time_units.h"
#include "service/port_service.h"

enum { ANSWER_MS = 200, TEXT_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };

bool statistics_page_fits(int page)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(page, F_GET_SEALS); /* of no other kind of file are there seals */
	struct stat about;

	return seals >= 0 && (seals & needed) == needed && fstat(page, &about) == 0 &&
	       about.st_size == (off_t)sizeof(struct program_page);
}

static bool read_at(int page, void *to, size_t bytes, size_t offset)
{
	return pread(page, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* The counters rise, whatever the page says. */
static void take_counts(struct program *program, const struct program_page *page)
{
	for (int i = 0; i < PROGRAM_COUNTS; i++) {
		if (program->counts[i] < page->counts[i])
			program->counts[i] = page->counts[i];
	}
}

bool statistics_read(struct program *program, struct program_page *page)
{
	uint64_t finished, begun;

	if (!read_at(program->page, &finished, sizeof(finished), offsetof(struct program_page, finished)) ||
	    !read_at(program->page, page, sizeof(*page), 0) ||
	    !read_at(program->page, &begun, sizeof(begun), offsetof(struct program_page, begun)))
		return false;
	if (begun != finished || !program_page_check(page))
		return false;
	take_counts(program, page);
	return true;
}

void statistics_add(uint64_t sum[PROGRAM_COUNTS], const uint64_t more[PROGRAM_COUNTS])
{
	for (int i = 0; i < PROGRAM_COUNTS; i++)
		sum[i] = sum[i] + more[i] < PROGRAM_PAGE_NUMBER_MAX ? sum[i] + more[i] : PROGRAM_PAGE_NUMBER_MAX;
}

static void set_timer(const struct service *service, long ms)
{
	const struct itimerspec once = { .it_value.tv_nsec = (long)(ms * NS_PER_MS) };

	timerfd_settime(service->report_timer, 0, &once, NULL);
}

static struct program *program_of(struct client *client)
{
	return client->program && client->program->page >= 0 ? client->program : NULL;
}

/* A program that still owes a report, because it was stopped, is not asked again: its messages would pile up. */
static void ask_for_report(const struct service *service, struct client *client)
{
	const struct stackd_answer event = { .verb = STACKD_REPORT };
	struct program *program = program_of(client);

	if (!program)
		return;
	program->reported = false;
	if (program->asked_round)
		return;
	program->asked_round = service->round;
	send_event(client, &event);
}

static bool all_have_reported(struct service *service)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct program *program = program_of(&service->clients[i]);

		if (program && program->asked_round)
			return false;
	}
	return true;
}

/* The text as a file in memory that nobody can change. Return a descriptor or -errno. */
static int make_text(struct service *service)
{
	int err, text = memfd_create("bw-stackd statistics", MFD_CLOEXEC | MFD_ALLOW_SEALING), copy = text < 0 ? -1 : dup(text);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (out) {
		err = statistics_write(service, out);
		err = fclose(out) && !err ? -errno : err;
		if (!err && fcntl(text, F_ADD_SEALS, TEXT_SEALS) == 0)
			return text;
	} else {
		err = -errno;
		if (copy >= 0)
			close(copy);
	}
	if (text >= 0)
		close(text);
	return err ? err : -EIO;
}

static void begin_round(struct service *service)
{
	service->round = service->round + 1 ? service->round + 1 : 1; /* 0 is none */
	service->round_runs = true;
	for (int i = 0; i < CLIENTS_MAX; i++)
		ask_for_report(service, &service->clients[i]);
	set_timer(service, ANSWER_MS);
}

/* Answer who has asked for this round. Return whether somebody waits for the next one. */
static bool answer_round(struct service *service)
{
	int text = make_text(service);
	bool more = false;

	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &service->clients[i];
		struct stackd_answer answer = {
			.verb = STACKD_STATISTICS, .number = client->statistics_number, .result = text < 0 ? text : 0,
		};

		if (client->connection < 0 || !client->waits_round)
			continue;
		if (client->waits_round != service->round) {
			more = true;
			continue;
		}
		client->waits_round = 0;
		send_text(client, &answer, text);
	}
	if (text >= 0)
		close(text);
	return more;
}

static void end_round(struct service *service)
{
	service->round_runs = false;
	set_timer(service, 0);
	if (answer_round(service))
		begin_round(service);
}

void statistics_look(struct service *service)
{
	while (service->round_runs && all_have_reported(service))
		end_round(service);
}

void statistics_time_is_up(struct service *service)
{
	uint64_t times;

	if (read(service->report_timer, &times, sizeof(times)) > 0 && service->round_runs)
		end_round(service);
}

int statistics_ask(struct service *service, struct client *client, uint32_t number)
{
	if (client->waits_round)
		return -EALREADY;
	client->statistics_number = number;
	if (service->round_runs) {
		client->waits_round = service->round + 1 ? service->round + 1 : 1;
	} else {
		begin_round(service);
		client->waits_round = service->round;
	}
	return 0;
}

int statistics_reported(struct service *service, struct client *client)
{
	struct program *program = program_of(client);
	uint32_t round = program ? program->asked_round : 0;

	if (!round)
		return -EINVAL;
	program->asked_round = 0;
	if (service->round_runs && round != service->round)
		ask_for_report(service, client); /* it answers an older question */
	else
		program->reported = true;
	return 0;
}

void statistics_joined(struct service *service, struct client *client)
{
	if (service->round_runs)
		ask_for_report(service, client);
}
