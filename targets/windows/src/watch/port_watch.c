/* SPDX-License-Identifier: Apache-2.0 */
#include "port_watch.h"

#include <string.h>

static struct watch_memory *memory;
static DWORD recorder, process;

bool watch_attach(void)
{
	HANDLE handle, order_handle;
	struct watch_order *order;

	process = GetCurrentProcessId();
	order = memory_map(WATCH_ORDER_NAME, process, 0, &order_handle);
	if (!order)
		return false;
	recorder = order->recorder;
	memory = memory_map(WATCH_MEMORY_NAME, recorder, 0, &handle);
	if (memory)
		__atomic_store_n(&order->attached, 1, __ATOMIC_RELEASE);
	UnmapViewOfFile(order);
	CloseHandle(order_handle);
	return memory != NULL;
}

struct watch_memory *watch_memory(void)
{
	return memory;
}

DWORD watch_recorder(void)
{
	return recorder;
}

static uint64_t now_ticks(void)
{
	LARGE_INTEGER ticks;

	QueryPerformanceCounter(&ticks);
	return (uint64_t)ticks.QuadPart;
}

void watch_begin(struct watch_event *event, enum watch_function function, SOCKET sock)
{
	*event = (struct watch_event){ .process = process, .thread = GetCurrentThreadId(), .function = (uint16_t)function };
	if (sock != INVALID_SOCKET)
		event->socket = socket_number(sock);
	event->begin_ticks = now_ticks();
}

void watch_end_with(struct watch_event *event, int64_t result, DWORD error)
{
	event->end_ticks = now_ticks();
	event->result = result;
	event->error = error;
	if (memory->recorded)
		ring_put(&memory->ring, event);
}

void watch_end(struct watch_event *event, int64_t result)
{
	DWORD error = GetLastError();

	watch_end_with(event, result, error);
	SetLastError(error);
}

void watch_value(struct watch_event *event, int which, int64_t value)
{
	event->values[which] = value;
	event->value_mask |= (uint16_t)(1 << which);
}

void watch_timeout_ms(struct watch_event *event, DWORD timeout_ms)
{
	watch_value(event, 0, timeout_ms == INFINITE ? -1 : (int64_t)timeout_ms * 1000000);
}

void watch_address(struct watch_event *event, const struct sockaddr *address, int length)
{
	if (address && length >= (int)sizeof(struct sockaddr_in) &&
	    (address->sa_family == AF_INET || (address->sa_family == AF_INET6 && length >= WATCH_ADDRESS_BYTES)))
		memcpy(event->address, address, address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : WATCH_ADDRESS_BYTES);
}

void watch_text(struct watch_event *event, const char *text)
{
	for (size_t i = 0; text && text[i] && i < WATCH_TEXT_BYTES - 1; i++)
		event->text[i] = text[i];
}

void watch_ready(struct watch_event *event, SOCKET sock, uint32_t events)
{
	if (event->ready_count < WATCH_READY_MAX)
		event->ready[event->ready_count] = (struct watch_ready){ socket_number(sock), events };
	event->ready_count++;
}

void watch_note(const char *text)
{
	struct watch_event event;

	watch_begin(&event, WATCH_NOTE, INVALID_SOCKET);
	watch_text(&event, text);
	watch_end(&event, 0);
}

void watch_note_once(long *said, const char *text)
{
	if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
		watch_note(text);
}
