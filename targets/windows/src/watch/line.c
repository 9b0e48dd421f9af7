/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "functions.h"

enum { FAMILY_IPV4 = 2, FAMILY_IPV6 = 23, PEEK = 2 }; /* AF_INET, AF_INET6, MSG_PEEK of Windows */

static const struct row {
	const char *name, *call, *keys[WATCH_VALUES];
} rows[] = {
#define WATCH_ROW(id, name, call, first, second, third) { name, call, { first, second, third } },
	WATCH_FUNCTIONS(WATCH_ROW)
};

static const struct {
	uint32_t number;
	const char *name;
} errors[] = {
	{ 5, "ERROR_ACCESS_DENIED" },  { 6, "ERROR_INVALID_HANDLE" }, { 38, "ERROR_HANDLE_EOF" }, { 64, "ERROR_NETNAME_DELETED" },
	{ 87, "ERROR_INVALID_PARAMETER" }, { 258, "WAIT_TIMEOUT" }, { 995, "WSA_OPERATION_ABORTED" }, { 996, "WSA_IO_INCOMPLETE" },
	{ 997, "WSA_IO_PENDING" },     { 1225, "ERROR_CONNECTION_REFUSED" }, { 1236, "ERROR_CONNECTION_ABORTED" },
	{ 10004, "WSAEINTR" },         { 10009, "WSAEBADF" },         { 10013, "WSAEACCES" },       { 10014, "WSAEFAULT" },
	{ 10022, "WSAEINVAL" },        { 10024, "WSAEMFILE" },        { 10035, "WSAEWOULDBLOCK" },  { 10036, "WSAEINPROGRESS" },
	{ 10037, "WSAEALREADY" },      { 10038, "WSAENOTSOCK" },      { 10039, "WSAEDESTADDRREQ" }, { 10040, "WSAEMSGSIZE" },
	{ 10041, "WSAEPROTOTYPE" },    { 10042, "WSAENOPROTOOPT" },   { 10043, "WSAEPROTONOSUPPORT" },
	{ 10044, "WSAESOCKTNOSUPPORT" }, { 10045, "WSAEOPNOTSUPP" },  { 10047, "WSAEAFNOSUPPORT" }, { 10048, "WSAEADDRINUSE" },
	{ 10049, "WSAEADDRNOTAVAIL" }, { 10050, "WSAENETDOWN" },      { 10051, "WSAENETUNREACH" },  { 10052, "WSAENETRESET" },
	{ 10053, "WSAECONNABORTED" },  { 10054, "WSAECONNRESET" },    { 10055, "WSAENOBUFS" },      { 10056, "WSAEISCONN" },
	{ 10057, "WSAENOTCONN" },      { 10058, "WSAESHUTDOWN" },     { 10060, "WSAETIMEDOUT" },    { 10061, "WSAECONNREFUSED" },
	{ 10064, "WSAEHOSTDOWN" },     { 10065, "WSAEHOSTUNREACH" },  { 10093, "WSANOTINITIALISED" }, { 10101, "WSAEDISCON" },
	{ 11001, "WSAHOST_NOT_FOUND" }, { 11002, "WSATRY_AGAIN" },    { 11003, "WSANO_RECOVERY" },  { 11004, "WSANO_DATA" },
};

struct line {
	char *text;
	size_t used, capacity;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	size_t room = line->capacity - line->used;
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line->text + line->used, room, format, values);
	va_end(values);
	if (length > 0)
		line->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* Text that the program gave: what is not ASCII becomes a question mark. */
static void add_text(struct line *line, const char *key, const char *text, size_t size)
{
	add(line, ",\"%s\":\"", key);
	for (size_t i = 0; i < size && text[i]; i++) {
		unsigned char letter = (unsigned char)text[i];

		if (letter == '"' || letter == '\\')
			add(line, "\\%c", letter);
		else
			add(line, "%c", letter >= ' ' && letter < 127 ? letter : '?');
	}
	add(line, "\"");
}

static void add_address(struct line *line, const char *key, const uint8_t *address)
{
	unsigned int family = address[0] | (unsigned int)address[1] << 8;
	unsigned int port = (unsigned int)address[2] << 8 | address[3];

	if (family == FAMILY_IPV4)
		add(line, ",\"%s\":[\"%u.%u.%u.%u\",%u]", key, address[4], address[5], address[6], address[7], port);
	if (family != FAMILY_IPV6)
		return;
	add(line, ",\"%s\":[\"", key);
	for (int i = 0; i < 8; i++)
		add(line, "%s%x", i ? ":" : "", (unsigned int)address[8 + 2 * i] << 8 | address[9 + 2 * i]);
	add(line, "\",%u]", port);
}

static void add_ready(struct line *line, const struct watch_event *event)
{
	size_t count = event->ready_count < WATCH_READY_MAX ? event->ready_count : WATCH_READY_MAX;

	add(line, ",\"ready\":[");
	for (size_t i = 0; i < count; i++)
		add(line, "%s[%" PRIu32 ",%" PRIu32 "]", i ? "," : "", event->ready[i].socket, event->ready[i].events);
	add(line, "]");
	if (event->ready_count > count)
		add(line, ",\"ready_left_out\":%u", (unsigned int)(event->ready_count - count));
}

static void add_end(struct line *line, const struct watch_event *event)
{
	const char *name = NULL;

	if (event->result >= 0) {
		add(line, ",\"result\":%" PRId64, event->result);
		return;
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].number == event->error)
			name = errors[i].name;
	}
	if (name)
		add(line, ",\"errno\":\"%s\"", name);
	else
		add(line, ",\"errno\":\"%" PRIu32 "\"", event->error);
}

static uint64_t nanoseconds(uint64_t ticks, uint64_t tick_hz)
{
	const uint64_t second_ns = UINT64_C(1000000000);

	return ticks / tick_hz * second_ns + ticks % tick_hz * second_ns / tick_hz;
}

static const char *call_name(const struct watch_event *event)
{
	const struct row *row = &rows[event->function == WATCH_COMPLETION ? event->ended : event->function];
	bool peek = row->call && strcmp(row->call, "receive") == 0 && event->value_mask & 2 && event->values[1] & PEEK;

	return peek ? "peek" : row->call;
}

size_t watch_line(const struct watch_event *event, uint64_t tick_hz, char *text)
{
	struct line line = { text, 0, WATCH_LINE_BYTES - 2 };
	const struct row *row = &rows[event->function];
	const char *call = call_name(event);

	add(&line, "{\"process\":%" PRIu32 ",\"thread\":%" PRIu32, event->process, event->thread);
	add(&line, ",\"begin_monotonic_ns\":%" PRIu64, nanoseconds(event->begin_ticks, tick_hz));
	if (event->function == WATCH_NOTE) {
		add_text(&line, "note", event->text, sizeof(event->text));
	} else {
		add(&line, ",\"duration_ns\":%" PRIu64, nanoseconds(event->end_ticks - event->begin_ticks, tick_hz));
		add(&line, ",\"call\":\"%s\",\"function\":\"%s\"", call, row->name);
		if (event->socket)
			add(&line, ",\"socket\":%" PRIu32, event->socket);
		for (int i = 0; i < WATCH_VALUES; i++) {
			if (event->value_mask & 1 << i && row->keys[i])
				add(&line, ",\"%s\":%" PRId64, row->keys[i], event->values[i]);
		}
		if (event->text[0])
			add_text(&line, "name", event->text, sizeof(event->text));
		add_address(&line, strcmp(call, "accept") == 0 ? "peer" : "address", event->address);
		if (event->operation)
			add(&line, ",\"operation\":%" PRIu64, event->operation);
		if (strcmp(call, "wait") == 0)
			add_ready(&line, event);
		add_end(&line, event);
	}
	text[line.used++] = '}';
	text[line.used++] = '\n';
	return line.used;
}

void watch_head(const struct watch_end *end, char *text)
{
	char head[WATCH_HEAD_BYTES];
	struct line line = { head, 0, sizeof(head) - 2 };

	add(&line, "{\"record\":\"bw-accel --watch\",\"version\":1");
	add_text(&line, "machine", end->machine, 40);
	add_text(&line, "state", end->state, 60);
	add(&line, ",\"calls\":%" PRIu64 ",\"lost\":%" PRIu64 "}", end->call_count, end->lost_count);
	memset(text, ' ', WATCH_HEAD_BYTES - 1);
	memcpy(text, head, line.used);
	text[WATCH_HEAD_BYTES - 1] = '\n';
}
