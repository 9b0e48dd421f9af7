/* SPDX-License-Identifier: Apache-2.0 */
/** Windows: which thread of a process outranks which. Wine keeps what it is told, and schedules by nothing of it. */
#include <windows.h>

#include "check.h"
#include "port/port.h"

enum { PRIORITY_RECEIVING = 40, PRIORITY_LOW_LATENCY = 42, PRIORITY_FIRST = 1, PRIORITY_LAST = 99 };

struct worker {
	struct port_thread *thread;
	HANDLE look, over;
	int level; /* of the thread, as Windows sees it once every thread has been started */
};

static void work(void *argument)
{
	struct worker *worker = argument;

	WaitForSingleObject(worker->look, INFINITE);
	worker->level = GetThreadPriority(GetCurrentThread());
	WaitForSingleObject(worker->over, INFINITE);
}

static void start(struct worker *worker, const char *name, int priority)
{
	worker->look = CreateEventW(NULL, TRUE, FALSE, NULL);
	worker->over = CreateEventW(NULL, TRUE, FALSE, NULL);
	CHECK_INT(port_thread_start(name, priority, PORT_CPU_ANY, work, worker, &worker->thread), 0);
}

static void look_and_end(struct worker *workers, int count)
{
	for (int i = 0; i < count; i++)
		SetEvent(workers[i].look);
	for (int i = 0; i < count; i++) {
		SetEvent(workers[i].over);
		port_thread_join(workers[i].thread);
	}
}

/* Before anything else: the class of a process stays real-time once it is. */
static void test_an_idle_thread_is_never_lifted(void)
{
	struct worker workers[2];

	start(&workers[0], "idle", PORT_PRIORITY_IDLE);
	start(&workers[1], "receiving", PRIORITY_RECEIVING);
	CHECK(port_thread_scheduling(workers[0].thread)->idle);
	CHECK(GetPriorityClass(GetCurrentProcess()) != REALTIME_PRIORITY_CLASS);
	CHECK(strstr(port_thread_scheduling(workers[1].thread)->note, "no real-time class beside idle threads"));
	look_and_end(workers, 2);
}

static void test_a_thread_that_asks_for_nothing_outranks_none(void)
{
	enum { EARLY, FIRST, RECEIVING, LOW_LATENCY, LAST, LATE, COUNT };
	static const int priorities[COUNT] = { 0, PRIORITY_FIRST, PRIORITY_RECEIVING, PRIORITY_LOW_LATENCY, PRIORITY_LAST, 0 };
	struct worker workers[COUNT];
	int of_main;

	for (int i = 0; i < COUNT; i++)
		start(&workers[i], "worker", priorities[i]);
	of_main = GetThreadPriority(GetCurrentThread());
	CHECK_INT(GetPriorityClass(GetCurrentProcess()), REALTIME_PRIORITY_CLASS);
	look_and_end(workers, COUNT);
	CHECK(workers[EARLY].level < workers[FIRST].level);
	CHECK(workers[LATE].level < workers[FIRST].level);
	CHECK(of_main < workers[FIRST].level);
	CHECK(workers[FIRST].level <= workers[RECEIVING].level);
	CHECK(workers[RECEIVING].level < workers[LOW_LATENCY].level);
	CHECK(workers[LOW_LATENCY].level < workers[LAST].level);
}

int main(void)
{
	test_an_idle_thread_is_never_lifted();
	test_a_thread_that_asks_for_nothing_outranks_none();
	return check_result();
}
