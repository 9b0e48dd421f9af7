/* SPDX-License-Identifier: Apache-2.0 */
/* The text of STACKD_STATISTICS. docs/user-stack.md has its keys. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/json.h"
#include "service/port_service.h"

enum { TEXT_VERSION = 1, BUFFER_BYTES = 64 * 1024 };

static void write_counts(struct json *json, const uint64_t counts[PROGRAM_COUNTS])
{
	json_object_open(json, "counts");
	for (int i = 0; i < PROGRAM_COUNTS; i++)
		json_uint(json, program_count_names[i], counts[i]);
	json_object_close(json);
}

void traffic_write(struct json *json, const struct traffic *traffic)
{
	json_object_open(json, "frames");
	json_uint(json, "in", traffic->path[PATH_IN]);
	json_uint(json, "out", traffic->path[PATH_OUT]);
	json_uint(json, "bytes_in", traffic->path[PATH_BYTES_IN]);
	json_uint(json, "bytes_out", traffic->path[PATH_BYTES_OUT]);
	json_object_open(json, "drops");
	json_uint(json, "ring_full", traffic->ring_full);
	json_uint(json, "fill_ring_empty", traffic->fill_ring_empty);
	json_uint(json, "bad_descriptor", traffic->bad_descriptor);
	json_uint(json, "malformed", traffic->path[PATH_MALFORMED]);
	json_uint(json, "foreign_protocol", traffic->path[PATH_FOREIGN_PROTOCOL]);
	json_uint(json, "foreign_address", traffic->path[PATH_FOREIGN_ADDRESS]);
	json_uint(json, "foreign_port", traffic->path[PATH_FOREIGN_PORT]);
	json_uint(json, "foreign_fragment", traffic->path[PATH_FOREIGN_FRAGMENT]);
	json_object_close(json);
	json_object_close(json);
}

static void write_end(struct json *json, const char *key, uint8_t family, const uint8_t *ip, uint16_t port)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(family == 4 ? AF_INET : AF_INET6, ip, text, sizeof(text));
	json_object_open(json, key);
	json_string(json, "address", text);
	json_uint(json, "port", port);
	json_object_close(json);
}

static void write_connection(struct json *json, const struct program_page_socket *sock)
{
	json_uint(json, "unsent_bytes", sock->unsent_bytes);
	json_uint(json, "unacknowledged_bytes", sock->unacknowledged_bytes);
	json_uint(json, "segment_bytes", sock->segment_bytes);
	json_uint(json, "send_window_bytes", sock->send_window_bytes);
	json_uint(json, "receive_window_bytes", sock->receive_window_bytes);
	json_uint(json, "congestion_window_bytes", sock->congestion_window_bytes);
	json_uint(json, "smoothed_rtt_us", sock->smoothed_rtt_us);
	json_uint(json, "retransmission_timeout_us", sock->retransmission_timeout_us);
	json_uint(json, "sent_segments", sock->sent_segments);
	json_uint(json, "retransmitted", sock->retransmitted);
	json_uint(json, "retransmitted_by_rack", sock->retransmitted_by_rack);
	json_uint(json, "retransmitted_by_probe", sock->retransmitted_by_probe);
	json_uint(json, "retransmitted_by_timeout", sock->retransmitted_by_timeout);
	json_uint(json, "duplicates", sock->duplicates);
}

static void write_socket(struct json *json, const struct program_page_socket *sock)
{
	json_object_open(json, NULL);
	json_string(json, "protocol", sock->protocol == IPPROTO_TCP ? "tcp" : "udp");
	json_uint(json, "family", sock->family);
	json_string(json, "state", program_state_name(sock->state));
	write_end(json, "local", sock->family, sock->local_ip, sock->local_port);
	if (sock->peer_port)
		write_end(json, "peer", sock->family, sock->peer_ip, sock->peer_port);
	if (sock->descriptor >= 0)
		json_int(json, "descriptor", sock->descriptor);
	json_uint(json, "waiting_bytes", sock->waiting_bytes);
	if (sock->state == TCP_LISTEN) {
		json_uint(json, "accept_waiting", sock->accept_waiting);
		json_uint(json, "accept_most", sock->accept_most);
	} else if (sock->protocol == IPPROTO_TCP) {
		write_connection(json, sock);
	}
	json_object_close(json);
}

static void write_page(struct json *json, const struct program_page *page)
{
	json_string(json, "name", page->name);
	json_object_open(json, "sockets_by_kind");
	json_uint(json, "tcp_listening", page->tcp_listening);
	json_uint(json, "tcp_open", page->tcp_open);
	json_uint(json, "tcp_without_socket", page->tcp_without_socket);
	json_uint(json, "udp_open", page->udp_open);
	json_object_close(json);
	json_uint(json, "sockets_left_out", page->sockets_left_out);
	json_array_open(json, "sockets");
	for (uint32_t i = 0; i < page->sockets; i++)
		write_socket(json, &page->socket[i]);
	json_array_close(json);
}

static void write_program(struct service *service, struct json *json, const struct client *client)
{
	struct program *program = client->program;
	const bool sound = program->page >= 0 && statistics_read(program, &service->page);
	struct traffic traffic;

	program_traffic(service, program, &traffic);
	json_object_open(json, NULL);
	json_int(json, "pid", client->who.pid);
	json_uint(json, "uid", client->who.uid);
	json_uint(json, "slot", program->path.number % PATH_SLOTS);
	json_string(json, "report", program->page < 0 ? "none" : !program->reported ? "late" : sound ? "fresh" : "malformed");
	if (sound)
		write_page(json, &service->page);
	write_counts(json, program->counts);
	traffic_write(json, &traffic);
	json_object_close(json);
	statistics_add(service->sum, program->counts);
	traffic_add(&service->traffic_sum, &traffic);
}

int statistics_write(struct service *service, FILE *out)
{
	struct json json;

	setvbuf(out, NULL, _IOFBF, BUFFER_BYTES);
	json_init(&json, out);
	service->traffic_sum = service->ended;
	memcpy(service->sum, service->ended_counts, sizeof(service->sum));
	json_object_open(&json, NULL);
	json_int(&json, "version", TEXT_VERSION);
	json_string(&json, "interface", service->name);
	json_array_open(&json, "programs");
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service->clients[i].program)
			write_program(service, &json, &service->clients[i]);
	}
	json_array_close(&json);
	json_uint(&json, "programs_ended", service->programs_ended);
	json_object_open(&json, "totals");
	write_counts(&json, service->sum);
	traffic_write(&json, &service->traffic_sum);
	json_object_close(&json);
	json_object_close(&json);
	return json_line_end(&json);
}
