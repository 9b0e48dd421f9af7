/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The estimator against a simulated truth: a peer whose offset, rate and wander are known, over paths with random,
 * asymmetric, at times very long delays.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/time_units.h"
#include "check.h"
#include "random.h"
#include "time/twoway.h"

#define SEEDS 1000
#define START_NS (INT64_C(1790000000) * NS_PER_S)
#define RUN_S 60
#define TICKS_PER_S 20 /* the simulated peer's rate is constant for so long */
#define TICK_S (1.0 / TICKS_PER_S)
#define TICKS ((RUN_S + 2) * TICKS_PER_S)
#define WARMUP_S 6
#define BURST 8

/* Offset of the peer as a known function of local time: integral of a rate that wanders within a limit. */
struct truth {
	double offset_ns[TICKS + 1];
	double rate_ppb[TICKS + 1];
	double step_at_s;
	double step_ns;
};

struct paths {
	double least_ns[2];  /* shortest delay there and back */
	double mean_ns[2];   /* of what comes on top, exponential */
	double burst_chance; /* of a delay of milliseconds */
};

struct simulation {
	struct random random;
	struct truth truth;
	struct paths paths;
	double now_s; /* local time since the start */
};

static double truth_offset_ns(const struct truth *truth, double local_s)
{
	int tick = (int)(local_s / TICK_S);
	double into_s = local_s - tick * TICK_S;

	return truth->offset_ns[tick] + truth->rate_ppb[tick] * into_s + (local_s >= truth->step_at_s ? truth->step_ns : 0);
}

static void make_truth(struct simulation *simulation, double wander_ppb_per_s)
{
	struct truth *truth = &simulation->truth;
	double wander = wander_ppb_per_s;

	truth->offset_ns[0] = (random_unit(&simulation->random) - 0.5) * 20e9;
	truth->rate_ppb[0] = (random_unit(&simulation->random) - 0.5) * 400e3;
	truth->step_at_s = 1e9;
	truth->step_ns = 0;
	for (int i = 0; i < TICKS; i++) {
		/* Runs of one direction are worse than noise: the rate turns once in 5 s on the average. */
		if (random_unit(&simulation->random) < TICK_S / 5)
			wander = (random_unit(&simulation->random) < 0.5 ? -1 : 1) * wander_ppb_per_s;
		truth->offset_ns[i + 1] = truth->offset_ns[i] + truth->rate_ppb[i] * TICK_S;
		truth->rate_ppb[i + 1] = truth->rate_ppb[i] + wander * TICK_S;
	}
}

enum asymmetry {
	SOME, /* both paths of the same kind */
	ALL,  /* one path takes no time at all, the other all of it: as bad as can be */
};

static void make_paths(struct simulation *simulation, enum asymmetry asymmetry)
{
	for (int i = 0; i < 2; i++) {
		simulation->paths.least_ns[i] = 50e3 + 50e3 * random_unit(&simulation->random);
		simulation->paths.mean_ns[i] = 30e3 + 270e3 * random_unit(&simulation->random);
	}
	if (asymmetry == ALL) {
		int way = random_unit(&simulation->random) < 0.5;

		simulation->paths.least_ns[way] = 0;
		simulation->paths.mean_ns[way] = 0.1;
	}
	simulation->paths.burst_chance = 0.05 * random_unit(&simulation->random);
}

static double delay_s(struct simulation *simulation, int way)
{
	double ns = simulation->paths.least_ns[way] +
		    random_exponential(&simulation->random, simulation->paths.mean_ns[way]);

	if (random_unit(&simulation->random) < simulation->paths.burst_chance)
		ns += 1e6 + 4e6 * random_unit(&simulation->random);
	return ns * 1e-9;
}

static int64_t local_ns(double local_s)
{
	return START_NS + (int64_t)floor(local_s * 1e9);
}

static int64_t peer_ns(const struct simulation *simulation, double local_s)
{
	return START_NS + (int64_t)floor(local_s * 1e9 + truth_offset_ns(&simulation->truth, local_s));
}

static struct twoway_exchange exchange(struct simulation *simulation)
{
	double sent_s = simulation->now_s, there_s = sent_s + delay_s(simulation, 0);
	double back_s = there_s + 5e-6 + random_exponential(&simulation->random, 20e-6);
	double received_s = back_s + delay_s(simulation, 1);

	simulation->now_s = received_s;
	return (struct twoway_exchange){ local_ns(sent_s), peer_ns(simulation, there_s), peer_ns(simulation, back_s),
					 local_ns(received_s) };
}

static struct simulation make_simulation(uint64_t seed, double wander_ppb_per_s, enum asymmetry asymmetry)
{
	struct simulation simulation = { .random = { seed } };

	make_truth(&simulation, wander_ppb_per_s);
	make_paths(&simulation, asymmetry);
	return simulation;
}

static enum twoway_outcome burst(struct simulation *simulation, struct twoway *twoway, int64_t *step_ns)
{
	for (int i = 0; i < BURST; i++) {
		struct twoway_exchange found = exchange(simulation);

		CHECK(twoway_add(twoway, &found) == 0);
	}
	return twoway_end_burst(twoway, step_ns);
}

/* Error of a line at a local time less its bound there: positive means that the bound lied. */
static double beyond_bound_ns(const struct simulation *simulation, const struct twoway_line *line, double local_s)
{
	int64_t at_local_ns = local_ns(local_s);
	double error_ns = fabs((double)twoway_line_offset_ns(line, at_local_ns) -
			       truth_offset_ns(&simulation->truth, local_s));

	return error_ns - (double)twoway_line_bound_ns(line, at_local_ns);
}

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Results of many runs. */
struct figures {
	double worst_beyond_ns; /* least room between a line's error and its bound, with the sign turned */
	double worst_beyond_half_ns; /* the same with half of the bound */
	unsigned int steps;
	size_t count;
	double *ratios; /* one a burst: bound at the end of a line's use over half the shortest round trips */
};

static void take_line(const struct simulation *simulation, const struct twoway_line *line, struct figures *figures)
{
	for (int quarter = 0; quarter <= 4; quarter++) {
		double at_s = simulation->now_s + quarter / 4.0, beyond_ns = beyond_bound_ns(simulation, line, at_s);

		figures->worst_beyond_ns = fmax(figures->worst_beyond_ns, beyond_ns);
		figures->worst_beyond_half_ns =
			fmax(figures->worst_beyond_half_ns,
			     beyond_ns + (double)twoway_line_bound_ns(line, local_ns(at_s)) / 2);
	}
}

static void run_once(uint64_t seed, double wander_ppb_per_s, enum asymmetry asymmetry, struct figures *figures)
{
	struct simulation simulation = make_simulation(seed, wander_ppb_per_s, asymmetry);
	struct twoway_config config = twoway_default_config();
	struct twoway *twoway = twoway_create(&config);
	const struct twoway_sample *samples;
	double halves_ns[RUN_S];
	size_t first = figures->count, kept;

	for (int second = 0; second < RUN_S; second++) {
		struct twoway_line line;

		simulation.now_s = second + 0.2 * random_unit(&simulation.random);
		figures->steps += burst(&simulation, twoway, NULL) != TWOWAY_UPDATED;
		line = twoway_current(twoway);
		take_line(&simulation, &line, figures);
		if (second >= WARMUP_S)
			figures->ratios[figures->count++] =
				(double)twoway_line_bound_ns(&line, local_ns(simulation.now_s + 1));
	}
	/* The yardstick: the median over the run of half the shortest round trip of a burst. */
	kept = twoway_series(twoway, &samples);
	CHECK_INT(kept, RUN_S);
	for (size_t i = 0; i < kept; i++)
		halves_ns[i] = (double)samples[i].bound_ns;
	qsort(halves_ns, kept, sizeof(*halves_ns), compare_doubles);
	while (first < figures->count)
		figures->ratios[first++] /= halves_ns[kept / 2];
	twoway_destroy(twoway);
}

/* The truth never lies beyond the bound, and the bound is not padded. Return the least room. */
static double check_bound(double wander_ppb_per_s, enum asymmetry asymmetry)
{
	struct figures figures = { .worst_beyond_ns = -1e18, .worst_beyond_half_ns = -1e18 };

	figures.ratios = malloc(sizeof(double) * SEEDS * RUN_S);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_once(seed, wander_ppb_per_s, asymmetry, &figures);
	qsort(figures.ratios, figures.count, sizeof(double), compare_doubles);
	fprintf(stderr,
		"wander %.0f ppb/s, %s asymmetry: bound over half the shortest round trip p50 %.3f p99 %.3f; least room %.0f ns\n",
		wander_ppb_per_s, asymmetry == ALL ? "all" : "some", figures.ratios[figures.count / 2],
		figures.ratios[figures.count * 99 / 100], -figures.worst_beyond_ns);
	CHECK_THAT(figures.worst_beyond_ns <= 0, "the truth lies %.1f ns beyond the bound", figures.worst_beyond_ns);
	CHECK_THAT(figures.ratios[figures.count / 2] <= 1.2, "median bound is %.3f of half the shortest round trips",
		   figures.ratios[figures.count / 2]);
	CHECK_INT(figures.steps, 0);
	if (asymmetry == ALL)
		/* The check has teeth: half of the bound would not do. */
		CHECK_THAT(figures.worst_beyond_half_ns > 0, "the bound is twice what the worst paths need");
	free(figures.ratios);
	return -figures.worst_beyond_ns;
}

/* A clock that breaks the limits that the bound rests on must be found out: beyond the bound, or reported as a step. */
static void check_broken_limits(void)
{
	struct twoway_config config = twoway_default_config();
	unsigned int reported = 0;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct simulation simulation = make_simulation(seed, 100 * (double)config.wander_ppb_per_s, SOME);
		struct twoway *twoway = twoway_create(&config);
		bool stepped = false;

		for (int second = 0; second < RUN_S; second++) {
			simulation.now_s = second;
			stepped = burst(&simulation, twoway, NULL) == TWOWAY_STEPPED || stepped;
		}
		reported += stepped;
		twoway_destroy(twoway);
	}
	CHECK_INT(reported, 100);
}

/* A step that both bounds cannot hide is seen by the first burst after it, with its size; a line follows at once. */
static void check_step(uint64_t seed, double step_ns)
{
	struct simulation simulation = make_simulation(seed, 100, SOME);
	struct twoway_config config = twoway_default_config();
	struct twoway *twoway = twoway_create(&config);
	struct twoway_summary summary;
	struct twoway_line line;
	int64_t found_ns = 0;

	simulation.truth.step_at_s = 30.5;
	simulation.truth.step_ns = step_ns;
	for (int second = 0; second < RUN_S; second++) {
		enum twoway_outcome outcome;
		int64_t before_ns;
		double both_ns;

		simulation.now_s = second;
		line = twoway_current(twoway);
		outcome = burst(&simulation, twoway, &found_ns);
		CHECK_THAT(outcome == (second == 31 ? TWOWAY_STEPPED : TWOWAY_UPDATED), "seed %" PRIu64 ", second %d: outcome %d",
			   seed, second, (int)outcome);
		before_ns = line.bound_ns;
		line = twoway_current(twoway);
		both_ns = (double)(before_ns + line.bound_ns) + 100e3;
		if (second == 31)
			CHECK_THAT(fabs((double)found_ns - step_ns) < both_ns, "a step of %.0f ns was found as %" PRId64,
				   step_ns, found_ns);
		CHECK(beyond_bound_ns(&simulation, &line, simulation.now_s + 0.5) <= 0 || second == 30);
	}
	twoway_summarise(twoway, local_ns(0), local_ns(RUN_S), &summary);
	CHECK_INT(summary.steps, 1);
	twoway_destroy(twoway);
}

/* The fit after the run is at least as good as its stated bound, and the residual says how far the used lines were off. */
static void check_summary(uint64_t seed)
{
	struct simulation simulation = make_simulation(seed, 100, SOME);
	struct twoway_config config = twoway_default_config();
	struct twoway *twoway = twoway_create(&config);
	struct twoway_summary summary, warm;
	const size_t end_tick = (size_t)RUN_S * TICKS_PER_S;
	double error_ns, end_rate_ppb = simulation.truth.rate_ppb[end_tick];

	twoway_summarise(twoway, local_ns(0), local_ns(RUN_S), &summary);
	CHECK_INT(summary.kept, 0);
	CHECK(!twoway_current(twoway).valid);
	CHECK_INT(twoway_end_burst(twoway, NULL), TWOWAY_NOTHING);
	for (int second = 0; second < RUN_S; second++) {
		simulation.now_s = second;
		burst(&simulation, twoway, NULL);
	}
	twoway_summarise(twoway, local_ns(WARMUP_S), local_ns(RUN_S), &summary);
	error_ns = (double)summary.offset_ns - truth_offset_ns(&simulation.truth, RUN_S);
	CHECK_INT(summary.exchanges, RUN_S * BURST);
	CHECK_INT(summary.kept, RUN_S);
	CHECK_INT(summary.at_local_ns, local_ns(RUN_S));
	CHECK_THAT(fabs(error_ns) <= (double)summary.bound_ns, "fit is off by %.0f ns, bound %" PRId64, error_ns,
		   summary.bound_ns);
	CHECK_THAT(fabs((double)summary.rate_ppb - end_rate_ppb) < 20000,
		   "rate %" PRId64 " ppb, truth %.0f", summary.rate_ppb, end_rate_ppb);
	CHECK(summary.rtt_min_ns >= 100000 && summary.rtt_min_ns <= summary.rtt_p50_ns);
	CHECK_THAT(summary.residual_ns > 0 && summary.residual_ns <= 2 * summary.bound_ns,
		   "residual %" PRId64 " ns, bound %" PRId64, summary.residual_ns, summary.bound_ns);
	/* The first lines do not know the rate: they count only when they are asked for. */
	twoway_summarise(twoway, local_ns(0), local_ns(RUN_S), &warm);
	CHECK(warm.bound_ns > 2 * summary.bound_ns);
	CHECK_INT(warm.offset_ns, summary.offset_ns);
	twoway_destroy(twoway);
}

/* Long runs: the store does not grow, the order of time stays, and the first and last minutes are still there. */
static void check_series(void)
{
	struct twoway_config config = twoway_default_config();
	struct twoway *twoway = twoway_create(&config);
	const struct twoway_sample *samples;
	struct random random = { 7 };
	const int64_t bursts = 3 * TWOWAY_SERIES_MAX + 5;
	size_t count;

	for (int64_t i = 0; i < bursts; i++) {
		int64_t t1_local_ns = START_NS + i * NS_PER_S, there_ns = random_between(&random, 50000, 90000);
		struct twoway_exchange found = { t1_local_ns, t1_local_ns + there_ns, t1_local_ns + there_ns + 1000,
						 t1_local_ns + there_ns + 1000 +
							 random_between(&random, 50000, 90000) };

		CHECK_INT(twoway_add(twoway, &found), 0);
		CHECK_INT(twoway_end_burst(twoway, NULL), TWOWAY_UPDATED);
	}
	count = twoway_series(twoway, &samples);
	CHECK(count <= TWOWAY_SERIES_MAX && count > TWOWAY_SERIES_MAX / 2);
	CHECK(samples[0].local_ns < START_NS + 60 * NS_PER_S);
	CHECK(samples[count - 1].local_ns > START_NS + (bursts - 60) * NS_PER_S);
	/* Every fourth of 12293 has room: none of the times between is left out. */
	for (size_t i = 1; i < count; i++)
		CHECK(samples[i].local_ns > samples[i - 1].local_ns &&
		      samples[i].local_ns < samples[i - 1].local_ns + 16 * NS_PER_S);
	twoway_destroy(twoway);
}

static void check_refused(void)
{
	static const struct twoway_exchange BAD[] = {
		{ 0, 5, 6, 7 },			  /* no stamp */
		{ 10, 5, 6, 9 },		  /* local clock ran backwards */
		{ 10, 9, 8, 20 },		  /* peer's clock ran backwards */
		{ 10, 100, 200, 50 },		  /* the peer took longer than the whole exchange */
		{ 10, -5, 6, 20 },
		{ 1, INT64_MAX, INT64_MAX, 10 },
		{ 1, 2, 3, (INT64_C(1) << 40) + 1 }, /* longer than 18 minutes */
	};
	struct twoway_config config = twoway_default_config();
	struct twoway *twoway = twoway_create(&config);
	struct twoway_summary summary;

	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		CHECK_THAT(twoway_add(twoway, &BAD[i]) == -EINVAL, "exchange %u was taken", (unsigned int)i);
	CHECK_INT(twoway_end_burst(twoway, NULL), TWOWAY_NOTHING);
	twoway_summarise(twoway, 0, 0, &summary);
	CHECK_INT(summary.invalid, sizeof(BAD) / sizeof(BAD[0]));
	twoway_destroy(twoway);
	config.window_ns = 0;
	CHECK(!twoway_create(&config) && errno == EINVAL);
}

static void check_wire(void)
{
	const struct twoway_packet sent = { TWOWAY_REPLY, 0x01020304, UINT64_C(0x1122334455667788), 1, -2,
					    INT64_C(0x0102030405060708) };
	uint8_t wire[TWOWAY_PACKET_BYTES + 1] = { 0 };
	struct twoway_packet got;

	twoway_pack(&sent, wire);
	CHECK(memcmp(wire, "BWO1\0\1\0\2\1\2\3\4\0\0\0\0\x11\x22\x33\x44\x55\x66\x77\x88", 24) == 0);
	CHECK(memcmp(wire + 40, "\1\2\3\4\5\6\7\10", 8) == 0);
	CHECK_INT(twoway_parse(wire, TWOWAY_PACKET_BYTES, &got), 0);
	CHECK(got.kind == sent.kind && got.sequence == sent.sequence && got.cookie == sent.cookie &&
	      got.t1_local_ns == 1 && got.t2_peer_ns == -2 && got.t3_peer_ns == sent.t3_peer_ns);
	CHECK_INT(twoway_parse(wire, TWOWAY_PACKET_BYTES - 1, &got), -EMSGSIZE);
	CHECK_INT(twoway_parse(wire, TWOWAY_PACKET_BYTES + 1, &got), -EMSGSIZE);
	/* Any other byte in magic, version, kind (3 is none) or the reserved word is refused. */
	for (int i = 0; i < 16; i++) {
		if (i >= 8 && i < 12)
			continue; /* sequence */
		wire[i] ^= 0x81;
		CHECK_THAT(twoway_parse(wire, TWOWAY_PACKET_BYTES, &got) == (i == 4 || i == 5 ? -EPROTONOSUPPORT : -EBADMSG),
			   "byte %d is not checked", i);
		wire[i] ^= 0x81;
	}
}

int main(void)
{
	double room_ns;

	check_bound(0, SOME);
	check_bound(500, SOME);
	room_ns = check_bound(0, ALL);
	room_ns = fmin(room_ns, check_bound(500, ALL));
	/* With the worst paths the bound is used up: it is exact, not generous. */
	CHECK_THAT(room_ns < 5000, "least room is %.0f ns", room_ns);
	check_broken_limits();
	for (uint64_t seed = 1; seed <= 50; seed++) {
		check_step(seed, 3e6);
		check_step(seed, -3e6);
		check_summary(seed);
	}
	check_series();
	check_refused();
	check_wire();
	return check_result();
}
