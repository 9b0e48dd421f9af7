/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The estimate of one server, on made-up clocks and networks whose truth is known: a rate that is 50 ppm off and walks by 1 ppb a
 * root second, ways with queues, and batches that are held up in one direction.
 *
 * With BW_SHOW set it prints its figures.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "base/time_units.h"
#include "timeservice/estimate.h"
#include "timeservice/publish.h"
#include "timeservice/select.h"
#include "made_world.h"

enum { BATCH = 16, QUICK_BATCHES = 8, SEEDS = 8, MANY_SEEDS = 100, SAMPLES_MAX = 200000, LEANING_SEEDS = 200, LEANING_BATCHES = 15, LOST_S = 3600, RATE_S = 1800 };

/* What was found against the truth. */
struct found {
	int count, outside, beyond_u, contradictions, surprises;
	double largest_ns;
	double errors_ns[SAMPLES_MAX], bounds_ns[SAMPLES_MAX], us_ns[SAMPLES_MAX], shares[SAMPLES_MAX];
};

static void batch(struct world *world, struct estimate *estimate, struct found *found)
{
	bool held = random_unit(&world->random) < world->held_share;

	world->held_there_ns = held && random_unit(&world->random) < 0.5 ? 20000 + 180000 * random_unit(&world->random) : 0;
	world->held_back_ns = held && !world->held_there_ns ? 20000 + 180000 * random_unit(&world->random) : 0;
	world->leans_ns = world->lean_ns > 0 ? world->lean_ns * random_normal(&world->random) : 0;
	for (int i = 0; i < BATCH; i++) {
		struct exchange_sample sample = exchange(world);

		estimate_add(estimate, &sample);
		pass(world, 2000000);
	}
	if (estimate_end_batch(estimate, NULL) == ESTIMATE_CONTRADICTION && found)
		found->contradictions++;
}

static void look(const struct world *world, const struct estimate *estimate, struct found *found)
{
	struct estimate_line line = estimate_current(estimate);
	double error_ns = (double)(estimate_offset_at(&line, world->local_ns) - world->ahead_ns) - world->offset_ns;
	double growth_ns = estimate_growth_at(&line, world->local_ns);
	double age_s = fmax((double)(world->local_ns - line.at_local_ns) * 1e-9, 0), u_ns = scatter_u_ns(&line.scatter, age_s);
	double low_ns = (double)line.low_ns + growth_ns, high_ns = (double)line.high_ns + growth_ns;

	if (found->count == SAMPLES_MAX)
		return;
	found->outside += error_ns > low_ns || error_ns < -high_ns;
	u_ns = fmin(u_ns, fmax(low_ns, high_ns));
	found->beyond_u += fabs(error_ns) > u_ns;
	found->largest_ns = fmax(found->largest_ns, fabs(error_ns));
	found->errors_ns[found->count] = fabs(error_ns);
	found->us_ns[found->count] = u_ns;
	found->shares[found->count] = fabs(error_ns) / u_ns;
	found->bounds_ns[found->count++] = fmax(low_ns, high_ns);
}

/* One exchange between batches, as once a second. */
static void check_once(struct world *world, struct estimate *estimate, struct found *found)
{
	const struct estimate_settings settings = estimate_default_settings();
	struct exchange_sample sample = exchange(world);
	int64_t local_ns, low_ns, high_ns;

	estimate_interval(&sample, &settings, &local_ns, &low_ns, &high_ns);
	found->surprises += !estimate_check(estimate, local_ns, low_ns, high_ns, world->root_distance_ns);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double quantile(double *values, int count, double share)
{
	qsort(values, (size_t)count, sizeof(values[0]), compare);
	return values[(int)((count - 1) * share)];
}

static struct estimate *new_estimate_of(int64_t min_way_ns, int64_t asymmetry_percent)
{
	struct estimate_settings settings = estimate_default_settings();

	settings.min_way_ns = min_way_ns;
	settings.asymmetry_percent = asymmetry_percent;
	return estimate_create(&settings);
}

static struct estimate *new_estimate(int64_t min_way_ns)
{
	return new_estimate_of(min_way_ns, 0); /* the ways are alike here */
}

/* Batches at an interval for a while; the first ones quickly, then each after twice as long, as the service does. */
static void run(struct world *world, struct estimate *estimate, int64_t interval_s, int64_t duration_s, struct found *found)
{
	int64_t begin_local_ns = world->local_ns;

	for (int i = 0; i < QUICK_BATCHES; i++) {
		batch(world, estimate, NULL);
		pass(world, NS_PER_S);
	}
	for (int64_t pace_s = 2; pace_s < interval_s; pace_s *= 2) {
		batch(world, estimate, NULL);
		pass(world, pace_s * NS_PER_S);
	}
	while (world->local_ns - begin_local_ns < duration_s * NS_PER_S) {
		batch(world, estimate, found);
		for (int64_t s = 0; s < interval_s; s++) {
			look(world, estimate, found);
			pass(world, NS_PER_S);
			look(world, estimate, found);
			check_once(world, estimate, found);
		}
	}
}

/*
 * What many seeds may show. The limits follow from 400 of them: with fewer, ratios scatter (that of U by half of one over eight), and so does
 * what is beyond U, because one such reading is followed by minutes of them.
 */
struct limits {
	uint64_t seeds;
	double beyond_u_ppm;
	double error_ns, u_ratio, bound_ns; /* largest error; median U by the median error; median of the interval's larger side; 0: none */
};

static void test_interval(int64_t interval_s, int64_t min_way_ns, double walk_ppb, struct limits limits)
{
	static struct found found;
	double largest_ns = 0, ratio = 0, widest_ns = 0;
	int outside = 0, beyond_u = 0, count = 0, contradictions = 0, surprises = 0;

	for (uint64_t seed = 1; seed <= limits.seeds; seed++) {
		struct world world = new_world(seed, walk_ppb);
		struct estimate *estimate = new_estimate(min_way_ns);
		double median_error_ns, median_bound_ns, median_u_ns;

		memset(&found, 0, sizeof(found));
		run(&world, estimate, interval_s, interval_s * 120 + 300, &found);
		estimate_destroy(estimate);
		median_error_ns = quantile(found.errors_ns, found.count, 0.5);
		median_bound_ns = quantile(found.bounds_ns, found.count, 0.5);
		median_u_ns = quantile(found.us_ns, found.count, 0.5);
		if (getenv("BW_SHOW"))
			fprintf(stderr, "interval %3d s walk %5.1f min way %5d seed %d: error p50 %6.0f p99 %6.0f max %6.0f ns, U p50 %6.0f (x %.1f) missed %d, error by U p99.9 %.2f, bound p50 %6.0f outside %d of %d, contradictions %d, surprises %d\n",
				(int)interval_s, walk_ppb, (int)min_way_ns, (int)seed, median_error_ns,
				quantile(found.errors_ns, found.count, 0.99), found.largest_ns, median_u_ns, median_u_ns / median_error_ns,
				found.beyond_u, quantile(found.shares, found.count, 0.999), median_bound_ns, found.outside, found.count, found.contradictions, found.surprises);
		largest_ns = fmax(largest_ns, found.largest_ns);
		ratio += median_u_ns / median_error_ns / (double)limits.seeds;
		widest_ns = fmax(widest_ns, median_bound_ns);
		outside += found.outside;
		beyond_u += found.beyond_u;
		count += found.count;
		contradictions += found.contradictions;
		surprises += found.surprises;
	}
	if (getenv("BW_SHOW"))
		fprintf(stderr, "interval %3d s walk %5.1f: error %.0f ns, U by error %.2f, %.0f ppm beyond U over %d seeds\n", (int)interval_s,
			walk_ppb, largest_ns, ratio, beyond_u * 1e6 / count, (int)limits.seeds);
	CHECK_THAT(outside == 0, "interval %d s: %d of %d outside the interval", (int)interval_s, outside, count);
	CHECK_THAT(beyond_u * 1e6 <= count * limits.beyond_u_ppm, "interval %d s: %d of %d beyond U", (int)interval_s, beyond_u, count);
	CHECK_THAT(contradictions == 0 && surprises == 0, "interval %d s: %d contradictions, %d surprises", (int)interval_s, contradictions,
		   surprises);
	if (limits.error_ns > 0)
		CHECK_THAT(largest_ns <= limits.error_ns, "interval %d s: error %.0f ns", (int)interval_s, largest_ns);
	if (limits.u_ratio > 0)
		CHECK_THAT(ratio <= limits.u_ratio, "interval %d s: U is %.1f times the error", (int)interval_s, ratio);
	if (limits.bound_ns > 0)
		CHECK_THAT(widest_ns <= limits.bound_ns, "interval %d s: bound %.0f ns", (int)interval_s, widest_ns);
}

/*
 * Batches whose ways lean, which no round trip tells. Two of them that were fast by chance must not fix the rate: what follows, and says otherwise,
 * takes longer and is trusted less.
 */
static void test_leaning(int64_t way_ns, double queue_ns, double lean_ns, int64_t asymmetry_percent, int64_t interval_s, double rms_max_ns)
{
	static struct found found;
	int beyond_u = 0, count = 0;
	double squares_ns2 = 0, rms_ns;

	for (uint64_t seed = 1; seed <= LEANING_SEEDS; seed++) {
		struct world world = new_world(seed, 1.0);
		struct estimate *estimate = new_estimate_of(0, asymmetry_percent);

		world.way_there_ns = world.way_back_ns = way_ns;
		world.queue_ns = queue_ns;
		world.lean_ns = lean_ns;
		world.held_share = 0;
		memset(&found, 0, sizeof(found));
		for (int i = 0; i < LEANING_BATCHES; i++) {
			batch(&world, estimate, NULL);
			pass(&world, interval_s * NS_PER_S);
			if (i >= 2)
				look(&world, estimate, &found);
		}
		for (int i = 0; i < found.count; i++)
			squares_ns2 += found.errors_ns[i] * found.errors_ns[i];
		beyond_u += found.beyond_u;
		count += found.count;
		estimate_destroy(estimate);
	}
	rms_ns = sqrt(squares_ns2 / count);
	if (getenv("BW_SHOW"))
		fprintf(stderr, "ways of %d ns that lean by %.0f ns: %.0f ns rms, %d of %d beyond U\n", (int)way_ns, lean_ns, rms_ns, beyond_u, count);
	CHECK_THAT(rms_ns <= rms_max_ns, "ways of %d ns that lean: %.0f ns rms", (int)way_ns, rms_ns);
	CHECK_THAT(beyond_u * 1000.0 <= count, "ways of %d ns that lean: %d of %d beyond U", (int)way_ns, beyond_u, count);
}

/* After five minutes nobody is asked any more. */
static void test_holdover(void)
{
	double worst_ppb = 0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		static struct found found;
		struct world world = new_world(seed, 0.1);
		struct estimate *estimate = new_estimate(0);
		struct estimate_line line;
		double error_before_ns, error_after_ns, slope_ppb;

		memset(&found, 0, sizeof(found));
		run(&world, estimate, 30, 300, &found);
		line = estimate_current(estimate);
		error_before_ns = (double)(estimate_offset_at(&line, world.local_ns) - world.ahead_ns) - world.offset_ns;
		pass(&world, 100 * NS_PER_S);
		error_after_ns = (double)(estimate_offset_at(&line, world.local_ns) - world.ahead_ns) - world.offset_ns;
		slope_ppb = fabs(error_after_ns - error_before_ns) / 100;
		worst_ppb = fmax(worst_ppb, slope_ppb);
		CHECK_THAT(fabs(error_after_ns) <= (double)(line.low_ns < line.high_ns ? line.low_ns : line.high_ns) +
							   estimate_growth_at(&line, world.local_ns),
			   "seed %d: outside the interval", (int)seed);
		estimate_destroy(estimate);
	}
	if (getenv("BW_SHOW"))
		fprintf(stderr, "holdover: at most %.2f ppb\n", worst_ppb);
	CHECK_THAT(worst_ppb <= 50, "holdover slope %.1f ppb", worst_ppb);
}

/* What readers see of a lost server, as long as there is a time. */
struct lost {
	int reads, outside, beyond_u;
	int64_t told_s; /* for so long */
	double first_error_ns, last_error_ns, u_ns;
};

static void read_lost(struct world *world, const struct local_time *local, const struct timepage_line *line, struct lost *lost)
{
	for (int s = 0; s <= LOST_S; s++) {
		uint64_t ticks = local_to_ticks(local, world->local_ns);
		int64_t utc_ns = timepage_utc_ns(line, ticks), low_ns, high_ns, error_ns = utc_ns - server_ns(world);

		if (ticks > line->usable_until_ticks)
			return;
		timepage_interval_ns(line, ticks, &low_ns, &high_ns);
		lost->reads++;
		lost->outside += error_ns > low_ns || error_ns < -high_ns;
		lost->beyond_u += llabs(error_ns) > timepage_u_ns(line, ticks);
		lost->told_s = s;
		lost->u_ns = (double)timepage_u_ns(line, ticks);
		lost->last_error_ns = (double)error_ns;
		if (s == 0)
			lost->first_error_ns = (double)error_ns;
		pass(world, NS_PER_S);
	}
}

/*
 * A server that is lost for an hour: until its bound is too wide to be told, the time has a true interval, and the error is within U.
 *
 * @param bound_max_ns   beyond which there is no time
 * @param rate_ppb       holdover, at most; 0: no limit
 * @param told_s         for how long there has to be a time, at least and at most
 */
static void test_lost(double walk_ppb, int64_t bound_max_ns, double rate_ppb, int64_t told_least_s, int64_t told_most_s)
{
	const struct local_time local = { UINT64_C(1) << 40, BEGIN_LOCAL_NS, 2300000000 };
	const struct publish_words words = { .state = TIMEPAGE_SYNCHRONISED, .stratum = 2, .tai_utc_s = 37 };
	struct publish_settings settings = publish_default_settings();
	int reads = 0, beyond_u = 0;
	double worst_ppb = 0;

	settings.bound_max_ns = bound_max_ns;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct found found;
		struct world world = new_world(seed, walk_ppb);
		struct estimate *estimate = new_estimate(0);
		struct estimate_line now;
		struct timepage_line line;
		struct lost lost = { 0 };
		double holdover_ppb;

		memset(&found, 0, sizeof(found));
		run(&world, estimate, 30, 1800, &found);
		now = estimate_current(estimate);
		publish_line(&settings, &local, &now, local_to_ticks(&local, world.local_ns), NULL, &words, &line);
		line.settled_utc_ns = line.base_utc_ns; /* without a line before there is nothing to slew */
		read_lost(&world, &local, &line, &lost);
		holdover_ppb = fabs(lost.last_error_ns - lost.first_error_ns) / (double)lost.told_s;
		worst_ppb = fmax(worst_ppb, holdover_ppb);
		if (getenv("BW_SHOW"))
			fprintf(stderr, "lost: walk %5.1f seed %d: told for %d s, then %.0f us off, U %.0f us; holdover %.2f ppb\n", walk_ppb,
				(int)seed, (int)lost.told_s, lost.last_error_ns / 1e3, lost.u_ns / 1e3, holdover_ppb);
		CHECK_THAT(lost.outside == 0, "walk %.1f seed %d: %d of %d outside the interval", walk_ppb, (int)seed, lost.outside, lost.reads);
		CHECK_THAT(told_least_s <= lost.told_s && lost.told_s <= told_most_s, "walk %.1f seed %d: told for %d s", walk_ppb, (int)seed,
			   (int)lost.told_s);
		reads += lost.reads;
		beyond_u += lost.beyond_u;
		estimate_destroy(estimate);
	}
	CHECK_THAT(beyond_u * 1000.0 <= reads, "walk %.1f: %d of %d beyond U", walk_ppb, beyond_u, reads);
	if (rate_ppb > 0)
		CHECK_THAT(worst_ppb <= rate_ppb, "walk %.1f: holdover %.2f ppb", walk_ppb, worst_ppb);
}

/*
 * A server whose own clock runs free, fast against UTC, and that tells truly how far it is from UTC: what was learnt from it is off in rate as well,
 * which no exchange shows. It is lost when it is as far ahead as it says; an hour later UTC still lies in the interval.
 */
static void test_server_rate(double server_ppb)
{
	const struct local_time local = { UINT64_C(1) << 40, BEGIN_LOCAL_NS, 2300000000 };
	const struct publish_words words = { .state = TIMEPAGE_SYNCHRONISED, .stratum = 2, .tai_utc_s = 37 };
	struct publish_settings settings = publish_default_settings();
	double worst = 0;

	settings.bound_max_ns = 10 * NS_PER_S;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct found found;
		struct world world = new_world(seed, 0.3);
		struct estimate *estimate = new_estimate(0);
		struct select_candidate server = { .usable = true };
		int64_t begin_local_ns = world.local_ns, root_ns;
		struct estimate_line selected;
		struct timepage_line line;
		int outside = 0;

		root_ns = world.root_distance_ns = llround(server_ppb * (RATE_S + 60) / 2); /* from one end to the other */
		run(&world, estimate, 30, RATE_S, &found);
		CHECK(world.local_ns - begin_local_ns < (RATE_S + 60) * NS_PER_S);
		server.line = estimate_current(estimate);
		CHECK_INT(select_line(&server, 1, world.local_ns, &selected), 1);
		publish_line(&settings, &local, &selected, local_to_ticks(&local, world.local_ns), NULL, &words, &line);
		line.settled_utc_ns = line.base_utc_ns;
		for (int s = 0; s <= LOST_S; s++) {
			uint64_t ticks = local_to_ticks(&local, world.local_ns);
			int64_t true_ns = server_ns(&world) - root_ns - llround(server_ppb * s), low_ns, high_ns;
			int64_t error_ns = timepage_utc_ns(&line, ticks) - true_ns;

			timepage_interval_ns(&line, ticks, &low_ns, &high_ns);
			outside += error_ns > low_ns || error_ns < -high_ns;
			worst = fmax(worst, (double)error_ns / (double)low_ns);
			pass(&world, NS_PER_S);
		}
		CHECK_THAT(outside == 0, "server %.0f ppb off, seed %d: %d readings outside the interval", server_ppb, (int)seed, outside);
		estimate_destroy(estimate);
	}
	if (getenv("BW_SHOW"))
		fprintf(stderr, "server %.0f ppb off: error at most %.2f of the interval\n", server_ppb, worst);
}

/* A server whose time jumps contradicts itself at once, and is known anew after some batches. */
static void test_step(void)
{
	static struct found found;
	struct world world = new_world(3, 1.0);
	struct estimate *estimate = new_estimate(0);
	struct estimate_line line;
	int64_t step_ns = 0;

	run(&world, estimate, 30, 300, &found);
	world.ahead_ns += 3600 * NS_PER_S;
	for (int i = 0; i < BATCH; i++) {
		struct exchange_sample sample = exchange(&world);

		CHECK_INT(estimate_add(estimate, &sample), 0);
	}
	CHECK_INT(estimate_end_batch(estimate, &step_ns), ESTIMATE_CONTRADICTION);
	CHECK_THAT(llabs(step_ns - 3600 * NS_PER_S) < 200000, "step %" PRId64, step_ns);
	CHECK_INT(estimate_batches(estimate), 1);
	for (int i = 0; i < 4; i++) {
		pass(&world, NS_PER_S);
		batch(&world, estimate, &found);
	}
	line = estimate_current(estimate);
	CHECK(fabs((double)(estimate_offset_at(&line, world.local_ns) - world.ahead_ns) - world.offset_ns) <=
	      (double)(line.low_ns < line.high_ns ? line.low_ns : line.high_ns) + estimate_growth_at(&line, world.local_ns));
	CHECK_INT(estimate_batches(estimate), 5);
	estimate_destroy(estimate);
}

static void test_limits(void)
{
	struct world world = new_world(4, 1.0);
	struct estimate *estimate = new_estimate(70000); /* more than the ways take */
	struct exchange_sample sample;
	struct estimate_settings wrong = estimate_default_settings();

	CHECK_INT(estimate_end_batch(estimate, NULL), ESTIMATE_NOTHING);
	CHECK(!estimate_current(estimate).valid);
	world.queue_ns = 100;
	sample = exchange(&world);
	CHECK_INT(estimate_add(estimate, &sample), -ERANGE);
	CHECK_INT(estimate_end_batch(estimate, NULL), ESTIMATE_NOTHING);
	estimate_destroy(estimate);
	wrong.drift_limit_ppb = -1;
	CHECK(!estimate_create(&wrong));
}

/*
 * In interleaved mode a batch begins with an exchange of a second before. What the clocks gain until the others, at a rate that nobody
 * knows yet, is no way that was faster than any.
 */
static void test_first_batch(void)
{
	for (int step = -2; step <= 2; step++) {
		double rate_ppb = 20000 * step;
		struct world world = new_world(6, 0.3);
		struct estimate *estimate = new_estimate(0);
		struct estimate_line line;

		world.rate_ppb = rate_ppb;
		for (int number = 0; number < 4; number++) {
			struct exchange_sample sample = exchange(&world);

			estimate_add(estimate, &sample);
			pass(&world, NS_PER_S);
			batch(&world, estimate, NULL);
			CHECK_THAT(estimate_delay_ns(estimate) > world.way_there_ns + world.way_back_ns - 1000, "rate %.0f ppb, batch %d: delay %d ns",
				   rate_ppb, number, (int)estimate_delay_ns(estimate));
		}
		line = estimate_current(estimate);
		CHECK_THAT(fabs(line.rate_ppb - rate_ppb) < 2000, "rate %.0f ppb: found %.0f", rate_ppb, line.rate_ppb);
		estimate_destroy(estimate);
	}
}

/* A counter whose rate changes by more than the limit of drift is found at the next exchange. */
static void test_drift(void)
{
	static struct found found;
	struct world world = new_world(5, 0.3);
	struct estimate *estimate = new_estimate(0);

	run(&world, estimate, 30, 600, &found);
	CHECK_INT(found.surprises, 0);
	world.rate_ppb += 200000;
	pass(&world, NS_PER_S);
	check_once(&world, estimate, &found);
	CHECK_INT(found.surprises, 1);
	estimate_destroy(estimate);
}

/* A program that stamps itself hears of answers late, each time: U covers that, and the kernel's stamps need no such room. */
static void test_user_stamps(void)
{
	static struct found found[2];

	for (int user = 0; user < 2; user++) {
		struct estimate_settings settings = estimate_default_settings();
		struct estimate *estimate = estimate_create(&settings);
		struct world world = new_world(7, 0.3);

		world.heard_ns = user ? 60000 : 0;
		run(&world, estimate, 30, 1800, &found[user]);
		CHECK_INT(found[user].outside, 0);
		CHECK_INT(found[user].beyond_u, 0);
		estimate_destroy(estimate);
	}
	CHECK_THAT(quantile(found[0].us_ns, found[0].count, 0.5) < 10000, "with the kernel's stamps: median U %.0f ns",
		   quantile(found[0].us_ns, found[0].count, 0.5));
	CHECK_THAT(quantile(found[1].errors_ns, found[1].count, 0.5) > 25000, "stamps of its own: median error %.0f ns",
		   quantile(found[1].errors_ns, found[1].count, 0.5));
}

int main(void)
{
	test_interval(30, 60000, 0.3, (struct limits){ .seeds = MANY_SEEDS, .beyond_u_ppm = 1000, .error_ns = 1200, .u_ratio = 10, .bound_ns = 90000 });
	test_interval(30, 0, 0.3, (struct limits){ .seeds = MANY_SEEDS, .beyond_u_ppm = 1000, .error_ns = 1200, .u_ratio = 10, .bound_ns = 90000 });
	test_interval(30, 0, 1, (struct limits){ .seeds = SEEDS, .beyond_u_ppm = 1000, .error_ns = 5000, .u_ratio = 10, .bound_ns = 90000 });
	test_interval(30, 0, 100, (struct limits){ .seeds = SEEDS, .beyond_u_ppm = 1000 }); /* what is told has to be true; the error is the walk's */
	test_interval(120, 60000, 1, (struct limits){ .seeds = SEEDS, .beyond_u_ppm = 1000, .error_ns = 18000 });
	test_interval(960, 60000, 1, (struct limits){ .seeds = SEEDS, .beyond_u_ppm = 2000, .error_ns = 250000 }); /* 1,114 ppm over 400 seeds */
	test_leaning(300000, 200000, 40000, 50, 1, 60000); /* as an emulated network card */
	test_leaning(60000, 3000, 1000, 10, 30, 1700);
	test_holdover();
	test_lost(0.3, 100000000, 50, LOST_S, LOST_S);
	test_lost(100, 100000000, 0, LOST_S, LOST_S);
	test_lost(100, 20000000, 0, 600, LOST_S / 2);
	test_server_rate(10000);
	test_server_rate(30000);
	test_server_rate(100000);
	test_step();
	test_first_batch();
	test_user_stamps();
	test_drift();
	test_limits();
	return check_result();
}
