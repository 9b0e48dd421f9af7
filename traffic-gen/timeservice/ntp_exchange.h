/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchanges with one NTP server (RFC 5905, client mode; RFC 9769, interleaved client/server mode). Pure: datagrams and
 * stamps are passed in.
 *
 * A request carries a random number in its transmit field, and is matched by it: who does not see it cannot answer it. In the
 * interleaved mode a reply carries the stamp that the server's kernel took when the reply *before* it was sent, which is what
 * makes an exchange complete: so an exchange is told one reply later. A server that knows no interleaved mode answers in basic
 * mode by itself, and its reply is used at once.
 *
 * Only what answers the request that is under way ends it; anybody could have sent the rest. With a key (RFC 8573) packets end in a
 * MAC, the id of the key and a tag, and only an answer with the right one ends a request.
 */
#ifndef BW_TIMESERVICE_NTP_EXCHANGE_H
#define BW_TIMESERVICE_NTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ntp/ntp_packet.h"

/*
 * Later than that, in the year 2096, is no time (the page tells none): NTP tells no era, and a server whose
 * clock stands in 1970 seems to say 2106.
 */
#define EXCHANGE_UTC_MAX_NS INT64_C(4000000000000000000)

/* Why a datagram is not used: those of ntp_packet.h, and these. */
enum exchange_reject {
	EXCHANGE_SOURCE = NTP_REJECTS, /* from another address or port than the server's */
	EXCHANGE_LONG,                 /* more than 48 bytes, or 68 with a key: nothing of the kind was asked for */
	EXCHANGE_DUPLICATE,            /* the reply that was used before, once more */
	EXCHANGE_PREVIOUS,             /* interleaved: what it says of the reply before cannot be */
	EXCHANGE_MIN_DELAY,            /* faster than min-delay-ns allows: the setting is wrong, or the reply is */
	EXCHANGE_NO_ANSWER,            /* none came in time */
	EXCHANGE_NOT_SENT,             /* the request did not leave this machine */
	/* It answers what was asked, but anybody who saw the request could have sent it. */
	EXCHANGE_MAC_MISSING,          /* no MAC */
	EXCHANGE_MAC_SHORT,            /* cut off */
	EXCHANGE_MAC_KEY,              /* of another key */
	EXCHANGE_MAC_WRONG,            /* the tag is not that of the packet */
	EXCHANGE_CRYPTO_NAK,           /* the server does not accept the request's MAC (RFC 5905, section 9.2) */
	EXCHANGE_REJECTS,
};

enum {
	EXCHANGE_KEY_ID_BYTES = 4,
	EXCHANGE_TAG_BYTES = 16, /* of AES-CMAC */
	EXCHANGE_PACKET_BYTES = NTP_PACKET_BYTES + EXCHANGE_KEY_ID_BYTES + EXCHANGE_TAG_BYTES,
};

/**
 * Work out the tag of some bytes.
 *
 * @return 0 or -errno
 */
typedef int exchange_tag(void *context, const uint8_t *bytes, size_t size_bytes, uint8_t tag[EXCHANGE_TAG_BYTES]);

/* A symmetric key that this machine shares with the server. */
struct exchange_key {
	uint32_t id; /* 0: none */
	exchange_tag *tag;
	void *context;
};

/* What four stamps say. */
struct exchange_sample {
	int64_t t1_local_ns, t4_local_ns; /* counter in ns at its nominal rate */
	uint64_t t1_ticks, t4_ticks;      /* the counter itself; 0 where they are the kernel's stamps */
	int64_t t2_utc_ns, t3_utc_ns;     /* the server's clock */
	int64_t error_ns;                 /* of t1 and t4, either way; t2 and t3 are as good as the server's precision */
	int64_t precision_ns;             /* of the server's clock */
	int64_t root_distance_ns;         /* from the server to UTC, as the reply with t2 says */
	bool kernel_stamps;               /* t1 and t4 are the kernel's */
	bool interleaved;                 /* t3 is the server's kernel's */
};

/* This machine's stamps of one exchange. */
struct exchange_stamps {
	int64_t t1_local_ns, t4_local_ns;
	uint64_t t1_ticks, t4_ticks; /* the counter itself; 0 where they are the kernel's stamps */
	int64_t error_ns;
	bool kernel;
};

/* What a server says of itself. */
struct exchange_server {
	unsigned int leap, stratum;
	int64_t root_distance_ns; /* half of its root delay, and its root dispersion */
	char kiss[NTP_KISS_BYTES];
};

struct ntp_exchange {
	bool interleave;           /* ask for it */
	struct exchange_key key;
	/* The request under way. */
	bool asked;
	uint64_t transmit;         /* its number */
	uint64_t receive;          /* of an interleaved request: else 0 */
	/* The last exchange that was answered. */
	bool answered;             /* there is one */
	bool open;                 /* its t3 is still to come */
	uint64_t last_transmit, last_receive; /* fields of its request */
	uint64_t server_receive;   /* t2, as on the wire */
	uint64_t received;         /* the number that stands for its reply's arrival */
	struct exchange_stamps last;
	int64_t precision_ns;      /* of the server's clock */
	int64_t root_distance_ns;  /* from the server to UTC */
	/* The reply that was taken and waits for ntp_exchange_finish(). */
	struct ntp_reply reply;
	bool reply_interleaved;
	uint64_t counts[EXCHANGE_REJECTS]; /* by reason; [NTP_GOOD]: used */
};

/** Begin. @param interleave  ask for the interleaved mode */
void ntp_exchange_init(struct ntp_exchange *exchange, bool interleave);

/** From now on requests carry a MAC, and replies have to. @param key  its context outlives the exchange */
void ntp_exchange_use_key(struct ntp_exchange *exchange, const struct exchange_key *key);

/**
 * Write a request; what was under way is given up.
 *
 * @param number  random; neither 0 nor that of the request before
 * @return its bytes, or -errno of the key: it is not to be sent
 */
int ntp_exchange_ask(struct ntp_exchange *exchange, uint64_t number, uint8_t packet[EXCHANGE_PACKET_BYTES]);

/**
 * Look at a datagram.
 *
 * @param from_server  it came from the server's address and port
 * @param ended        set to whether the request is over: answered well, or by what only the server could send
 * @param server       what the server says of itself; written when *ended
 * @return NTP_GOOD: call ntp_exchange_finish() next; or the reason against it, which was counted
 */
unsigned int ntp_exchange_take(struct ntp_exchange *exchange, const uint8_t *bytes, size_t size_bytes, bool from_server,
			       bool *ended, struct exchange_server *server);

/**
 * Complete the exchange whose reply was taken.
 *
 * @param stamps  of this exchange
 * @param number  random, not 0: by it the next request names this reply, in the interleaved mode
 * @param sample  receives what is known for certain: of this exchange (basic), or of the one before it (interleaved)
 * @return true: there is a sample; false: not yet, or *reject says why there is none
 */
bool ntp_exchange_finish(struct ntp_exchange *exchange, const struct exchange_stamps *stamps, uint64_t number,
			 struct exchange_sample *sample, unsigned int *reject);

/**
 * What the last reply alone says, at once and roughly: the server's stamp of receiving lies between this machine's two stamps.
 *
 * @return false: there is none. Offsets are of the server against local time.
 */
bool ntp_exchange_rough(const struct ntp_exchange *exchange, int64_t *local_ns, int64_t *low_ns, int64_t *high_ns);

/** The stamps of the last exchange for that; what the server's clock is read in steps of is in their error. */
struct exchange_stamps ntp_exchange_rough_stamps(const struct ntp_exchange *exchange);

/** The same of two stamps, and the server's stamp of receiving. */
void exchange_rough_interval(const struct exchange_stamps *stamps, int64_t t2_utc_ns, int64_t *local_ns, int64_t *low_ns,
			     int64_t *high_ns);

/** Count something that is no datagram, or one that was refused by another module. */
void ntp_exchange_count(struct ntp_exchange *exchange, unsigned int reject);

/** Forget the last exchange: the next request is a basic one. After a change of the counter or of the socket. */
void ntp_exchange_restart(struct ntp_exchange *exchange);

/** Is this a reason of authentication, EXCHANGE_MAC_MISSING to EXCHANGE_CRYPTO_NAK? */
bool exchange_reject_is_of_key(unsigned int reject);
/** A word for a reason: "origin", "duplicate", … */
const char *exchange_reject_name(unsigned int reject);

#endif
