/* SPDX-License-Identifier: Apache-2.0 */
/* The service's parts. Results are 0 or more, or -errno, where nothing else is said. */
#ifndef BW_PORT_SERVICE_H
#define BW_PORT_SERVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "bpf/port_bpf.h"
#include "local_socket/port_local_socket.h"
#include "path/port_path.h"
#include "service/program_page.h"
#include "service/stackd.h"

#define VETH_NAME "bwu%u-%u" /* of the end beside the interface: its number, the slot */

enum { CLIENTS_MAX = 512, ASKED_MAX = 256, PROTOCOLS = 2 };

struct netlink_changes;

/* The namespaces of the interface and, that of the service alone, of the programs' ends of the veths. */
struct namespaces {
	int home, own;
};

/* An address that a program asked the way to, and what it knows of it. */
struct asked {
	struct path_address to, source;
	struct path_address next; /* the neighbour on the way: `to` itself, or a router; of no family: there is no way */
	int32_t result;
	uint8_t mac[PATH_MAC_BYTES];
};

/* What the service has of a program. */
struct program {
	struct path_program path;
	int own_index;     /* of the program's end of the veth */
	int socket;        /* of AF_XDP: what the kernel counts of its rings */
	struct asked asked[ASKED_MAX]; /* the last ones */
	int asked_count, asked_next;
	int port_count;
	int page;             /* descriptor of what it says of itself; -1: it says nothing */
	uint32_t asked_round; /* of statistics, in which it was asked to write that, and has not since; 0: none */
	bool reported;        /* it has, in the last round */
	uint64_t counts[PROGRAM_COUNTS];
};

struct client {
	int connection; /* -1: free */
	struct ucred who;
	struct program *program; /* NULL: has not said hello, or there is no client */
	uint32_t waits_round, statistics_number; /* the round of statistics that it waits for, 0: none, and its request */
};

struct port {
	struct path_owner owner; /* of number 0: it is free */
	int descriptor;          /* the kernel's socket that has it, too */
};

/* Totals over all programs, also those that have ended. */
struct traffic {
	uint64_t path[PATH_COUNTS];
	uint64_t ring_full, fill_ring_empty, bad_descriptor; /* of rings of AF_XDP */
};

struct service {
	const char *name, *socket_path;
	struct path_interface interface;
	struct path_address addresses[PATH_ADDRESSES];
	int address_count;
	struct namespaces namespaces;
	int netlink, own_netlink, events, epoll, signals, timer;
	struct local_listener listener;
	int guard;
	uint32_t last_number;
	struct path path;
	struct client clients[CLIENTS_MAX];
	struct port ports[PROTOCOLS][PATH_PORTS];
	struct program *left[PATH_SLOTS]; /* of programs that have ended: what is not removed yet, by slot */
	int left_count;
	struct traffic ended; /* of programs that have ended */
	uint64_t ended_counts[PROGRAM_COUNTS], programs_ended;

	/* Statistics. */
	int report_timer;
	uint32_t round;
	bool round_runs;
	struct program_page page; /* a copy */
	uint64_t sum[PROGRAM_COUNTS];
	struct traffic traffic_sum;

	char log[BPF_LOG_BYTES];
	char text[STACKD_SHOW_BYTES];
};

/* port_guard.c: a process that outlives the service, and removes the veths that it has left. */

/** Begin, before anything else is open. @return a descriptor to tell it by; it acts when the last copy is closed */
int guard_begin(void);
/** Let it end, and wait for that. */
void guard_end(int guard);
/** Tell it of a veth. Of a slot it knows one. */
void guard_tell(int guard, uint32_t slot, int interface_index);

/* port_namespaces.c */
int namespaces_open(struct namespaces *namespaces);
int namespaces_enter(int descriptor);
/** Let IPv6 leave interfaces alone: one, or "default" for all that are made. */
int namespaces_without_ipv6(const char *interface);

/* port_program.c */

/**
 * Give a program its veth, memory and socket.
 *
 * @param memory  receives a descriptor of the memory, which the caller closes
 */
int program_begin(struct service *service, struct client *client, struct stackd_answer *answer, int *memory);
/** Take a program's ports back, and its counts over. What costs more, tens of milliseconds, is left: programs_remove_one. */
void program_end(struct service *service, struct client *client);
/** Remove the rest of one program that has ended. @return whether there was one */
bool programs_remove_one(struct service *service);
void program_traffic(const struct service *service, const struct program *program, struct traffic *traffic);
void traffic_add(struct traffic *sum, const struct traffic *more);
/** Let all veths have the interface's MTU. */
void programs_set_mtu(const struct service *service);

/* port_ports.c */
struct port *port_of(struct service *service, uint8_t protocol, uint16_t port);
/** Give a port. @param descriptor  a socket that has it; kept on success */
int port_bind(struct service *service, struct program *program, const struct stackd_request *request, int descriptor);
int port_unbind(struct service *service, struct program *program, const struct stackd_request *request);
void ports_free(struct service *service, uint32_t number);

/* port_interface.c */

/** Take over what has changed of the interface, and tell programs. @return 0; -ENODEV: it has gone; another -errno: nothing is changed */
int interface_take(struct service *service);
/** Put what programs are to know of the interface into an answer. */
void interface_tell(const struct service *service, struct stackd_answer *answer);

/* port_neighbours.c */
void resolve(struct service *service, struct client *client, const struct stackd_request *request, struct stackd_answer *answer);
/** Look again at the ways that changes concern, and tell programs what is different. */
void resolve_again(struct service *service, const struct netlink_changes *changes);
/** Let the kernel confirm the neighbours in use. */
void confirm_neighbours(struct service *service);

/** port_show.c: put JSON into service->text. @param length  receives its bytes @return 0 or -errno */
int show(struct service *service, size_t *length);

/* port_statistics.c */

/** Whether a descriptor is a page that can be read at any time: in memory, of its size for good. */
bool statistics_page_fits(int page);
/** Copy a program's page, and take over its counters. @return whether it is sound */
bool statistics_read(struct program *program, struct program_page *page);
void statistics_add(uint64_t sum[PROGRAM_COUNTS], const uint64_t more[PROGRAM_COUNTS]);
/** A client asks: the answer follows. @return 0 or -errno */
int statistics_ask(struct service *service, struct client *client, uint32_t number);
/** A program has written its page. @return 0 or -errno */
int statistics_reported(struct service *service, struct client *client);
/** A program has come. */
void statistics_joined(struct service *service, struct client *client);
/** Answer if nobody is waited for any more. */
void statistics_look(struct service *service);
void statistics_time_is_up(struct service *service);

struct json;

/* port_statistics_text.c */

/** Write the text. @return 0 or -errno */
int statistics_write(struct service *service, FILE *out);
/** Write "frames", and the drops among them. */
void traffic_write(struct json *json, const struct traffic *traffic);

/* port_serve.c */
/** Answer with a descriptor, if it is not negative. */
void send_text(const struct client *client, const struct stackd_answer *answer, int text);
/** Send a client what it has not asked for. One that does not read is cut off. */
void send_event(const struct client *client, const struct stackd_answer *event);

#endif
