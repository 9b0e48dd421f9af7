/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Servers that are never further from UTC than they say, whatever they do within that: slew, step, swing, while their root distance falls,
 * rises, flips or is a sawtooth. At any moment the server may be lost. UTC lies in the interval of every reading.
 *
 * Arguments: first scene, number of scenes; those alone are tried then. With BW_SHOW set it prints the figures of each scene.
 */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "base/time_units.h"
#include "timeservice/estimate.h"
#include "timeservice/fixed_mul.h"
#include "timeservice/publish.h"
#include "timeservice/select.h"
#include "made_world.h"

enum { BATCH = 16, QUICK_BATCHES = 8, CONFIRM_BATCHES = 3, LOST_S = 600, READS_MAX = 16384, SCENES = 60 };

enum distance { STEADY, FALLS, RISES, FLIPS, SAWTOOTH, DISTANCES };
enum movement { STILL, STEPS, SWINGS, JUMPS, MOVEMENTS };

#define LEAST_NS 20e3 /* root distance of a server that follows its source */

static const char *const DISTANCE_NAMES[DISTANCES] = { "steady", "falls", "rises", "flips", "sawtooth" };
static const char *const MOVEMENT_NAMES[MOVEMENTS] = { "still", "steps", "swings", "jumps" };

struct scene {
	struct world world;
	enum distance distance;
	enum movement movement;
	double most_ns, slope_ppb, from_s; /* of the root distance, and when it begins to change */
	double period_s, place;            /* of the server within its root distance: -1 .. 1 */
	int64_t interval_s, lost_after_s;
	bool loaded;                       /* exchanges are held up by the server and on the way */
};

/* What readers see. */
struct seen {
	int reads, outside;
	int64_t locked_s;
	double worst_ns; /* outside by */
	double bounds_ns[READS_MAX], us_ns[READS_MAX];
};

struct service_of_one {
	struct estimate *estimate;
	struct timepage_line line;
	bool has_time;
	int quick_left;
	int64_t pace_s;
};

static const struct local_time LOCAL = { UINT64_C(1) << 40, BEGIN_LOCAL_NS, 2300000000 };

static double between(struct random *random, double low, double high)
{
	return low + (high - low) * random_unit(random);
}

static double log_between(struct random *random, double low, double high)
{
	return exp(between(random, log(low), log(high)));
}

static struct scene draw(uint64_t seed)
{
	struct scene scene = { .world = new_world(seed, 0) };
	struct random *random = &scene.world.random;

	scene.distance = (enum distance)(random_unit(random) * DISTANCES);
	scene.movement = (enum movement)(random_unit(random) * MOVEMENTS);
	scene.world.walk_ppb = log_between(random, 0.1, 3);
	scene.world.rate_ppb = between(random, -1, 1) * (random_unit(random) < 0.3 ? 450000 : 50000);
	scene.world.way_there_ns = llround(log_between(random, 3e3, 100e3));
	scene.world.way_back_ns = llround(log_between(random, 3e3, 100e3));
	scene.world.queue_ns = log_between(random, 300, 30e3);
	scene.loaded = random_unit(random) < 0.3;
	scene.most_ns = log_between(random, 2 * LEAST_NS, 50e6);
	scene.slope_ppb = log_between(random, 1e3, 500e3);
	scene.from_s = log_between(random, 1, 300);
	scene.period_s = log_between(random, 3, 600);
	scene.place = random_unit(random) < 0.5 ? 1 : between(random, -1, 1);
	scene.interval_s = (int64_t[]){ 1, 4, 30 }[(int)(random_unit(random) * 3)];
	scene.lost_after_s = llround(log_between(random, 10, 1500));
	return scene;
}

static double now_s(const struct scene *scene)
{
	return (double)(scene->world.local_ns - BEGIN_LOCAL_NS) * 1e-9;
}

static double distance_ns(const struct scene *scene)
{
	double at_s = now_s(scene), moved_ns = scene->slope_ppb * fmax(at_s - scene->from_s, 0.0);

	switch (scene->distance) {
	case FALLS:
		return fmax(scene->most_ns - moved_ns, LEAST_NS);
	case RISES:
		return fmin(LEAST_NS + moved_ns, scene->most_ns);
	case FLIPS:
		return fmod(at_s, scene->period_s) * 2 < scene->period_s ? scene->most_ns : LEAST_NS;
	case SAWTOOTH:
		return fmin(LEAST_NS + scene->slope_ppb * fmod(at_s, scene->period_s), scene->most_ns);
	default:
		return scene->most_ns;
	}
}

static double place(struct scene *scene)
{
	switch (scene->movement) {
	case STEPS:
		return fmod(now_s(scene), scene->period_s) * 2 < scene->period_s ? scene->place : -scene->place;
	case SWINGS:
		return scene->place * sin(2 * acos(-1) * now_s(scene) / scene->period_s);
	case JUMPS:
		if (random_unit(&scene->world.random) < 0.01)
			scene->place = between(&scene->world.random, -1, 1);
		return scene->place;
	default:
		return scene->place;
	}
}

static struct exchange_sample ask(struct scene *scene)
{
	struct world *world = &scene->world;
	double most_ns = distance_ns(scene);
	bool held = scene->loaded && random_unit(&world->random) < 0.2;
	double held_ns = held ? between(&world->random, 0, 60e6) : 0, where = 3 * random_unit(&world->random);

	world->root_distance_ns = (int64_t)ceil(most_ns);
	world->error_ns = (int64_t)(most_ns * place(scene));
	world->held_there_ns = where < 1 ? held_ns : 0;
	world->held_ns = where >= 1 && where < 2 ? llround(held_ns) : 0;
	world->held_back_ns = where >= 2 ? held_ns : 0;
	return exchange(world);
}

static void publish(struct scene *scene, struct service_of_one *service)
{
	const struct publish_words words = { .state = TIMEPAGE_SYNCHRONISED, .stratum = 2, .tai_utc_s = 37 };
	const struct publish_settings settings = publish_default_settings();
	struct select_candidate candidate = { .usable = true, .line = estimate_current(service->estimate) };
	struct timepage_line before = service->line;
	struct estimate_line selected;

	if (estimate_batches(service->estimate) < CONFIRM_BATCHES) {
		service->has_time = false;
		return;
	}
	CHECK_INT(select_line(&candidate, 1, scene->world.local_ns, &selected), 1);
	publish_line(&settings, &LOCAL, &selected, local_to_ticks(&LOCAL, scene->world.local_ns), &before, &words, &service->line);
	service->line.settled_utc_ns = service->line.base_utc_ns +
				       (int64_t)fixed_mul(service->line.settled_ticks - service->line.base_ticks, service->line.mult);
	service->has_time = publish_gives_time(service->line.state);
}

static void run_batch(struct scene *scene, struct service_of_one *service)
{
	for (int i = 0; i < BATCH; i++) {
		struct exchange_sample sample = ask(scene);

		estimate_add(service->estimate, &sample);
		pass(&scene->world, 2000000);
	}
	if (estimate_end_batch(service->estimate, NULL) == ESTIMATE_CONTRADICTION)
		service->quick_left = QUICK_BATCHES;
	if (service->quick_left > 0)
		service->quick_left--, service->pace_s = 1;
	else
		service->pace_s *= 2;
	if (service->pace_s > scene->interval_s)
		service->pace_s = scene->interval_s;
}

/* As between batches. Returns false: another batch is due. */
static bool run_check(struct scene *scene, struct service_of_one *service)
{
	struct exchange_sample sample = ask(scene);
	struct exchange_stamps stamps = { sample.t1_local_ns, sample.t4_local_ns, 0, 0, sample.error_ns + sample.precision_ns, true };
	int64_t local_ns, low_ns, high_ns;

	exchange_rough_interval(&stamps, sample.t2_utc_ns, &local_ns, &low_ns, &high_ns);
	if (estimate_check(service->estimate, local_ns, low_ns, high_ns, sample.root_distance_ns))
		return true;
	service->quick_left = QUICK_BATCHES;
	return false;
}

static void look(const struct scene *scene, const struct service_of_one *service, struct seen *seen)
{
	uint64_t ticks = local_to_ticks(&LOCAL, scene->world.local_ns);
	int64_t low_ns, high_ns, error_ns;

	if (!service->has_time || ticks > service->line.usable_until_ticks || seen->reads == READS_MAX)
		return;
	error_ns = timepage_utc_ns(&service->line, ticks) - utc_ns(&scene->world);
	timepage_interval_ns(&service->line, ticks, &low_ns, &high_ns);
	if (!seen->reads)
		seen->locked_s = llround(now_s(scene));
	seen->outside += error_ns > low_ns || error_ns < -high_ns;
	seen->worst_ns = fmax(seen->worst_ns, (double)(error_ns > 0 ? error_ns - low_ns : -error_ns - high_ns));
	seen->us_ns[seen->reads] = (double)timepage_u_ns(&service->line, ticks);
	seen->bounds_ns[seen->reads++] = (double)(low_ns > high_ns ? low_ns : high_ns);
}

static void run(struct scene *scene, struct seen *seen)
{
	const struct estimate_settings settings = estimate_default_settings();
	struct service_of_one service = { .estimate = estimate_create(&settings), .quick_left = QUICK_BATCHES };
	double next_batch_s = 0;

	while (now_s(scene) < (double)scene->lost_after_s) {
		if (now_s(scene) >= next_batch_s || !run_check(scene, &service)) {
			run_batch(scene, &service);
			next_batch_s = now_s(scene) + (double)service.pace_s;
		}
		publish(scene, &service);
		look(scene, &service, seen);
		pass(&scene->world, 20 * NS_PER_MS);
		look(scene, &service, seen);
		pass(&scene->world, NS_PER_S - 20 * NS_PER_MS);
		look(scene, &service, seen);
	}
	for (int s = 0; s < LOST_S; s++) {
		pass(&scene->world, NS_PER_S);
		look(scene, &service, seen);
	}
	estimate_destroy(service.estimate);
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(values[0]), compare);
	return count ? values[count / 2] : 0;
}

/* Returns the readings. */
static int test_scene(uint64_t seed)
{
	static struct seen seen;
	struct scene scene = draw(seed);

	memset(&seen, 0, sizeof(seen));
	run(&scene, &seen);
	if (getenv("BW_SHOW"))
		fprintf(stderr, "scene %" PRIu64 " %s %s %s lost %d reads %d outside %d worst_ns %.0f locked_s %d bound_ns %.0f u_ns %.0f\n", seed,
			DISTANCE_NAMES[scene.distance], MOVEMENT_NAMES[scene.movement], scene.loaded ? "loaded" : "quiet",
			(int)scene.lost_after_s, seen.reads, seen.outside, seen.worst_ns, (int)seen.locked_s,
			median(seen.bounds_ns, seen.reads), median(seen.us_ns, seen.reads));
	CHECK_THAT(seen.outside == 0, "scene %" PRIu64 ", root distance %s, server %s: %d of %d readings outside the interval, by up to %.0f ns",
		   seed, DISTANCE_NAMES[scene.distance], MOVEMENT_NAMES[scene.movement], seen.outside, seen.reads, seen.worst_ns);
	return seen.reads;
}

/* All that a server was off is slewed away within its root distance, which falls to nothing; then it is lost at once. */
static void test_slew(double slew_ppb, double slew_s)
{
	static struct seen seen;
	struct scene scene = {
		.world = new_world(2, 0.3),
		.distance = FALLS,
		.most_ns = LEAST_NS + slew_ppb * slew_s,
		.slope_ppb = slew_ppb,
		.from_s = 30,
		.place = 1,
		.interval_s = 30,
		.lost_after_s = llround(30 + slew_s),
	};

	memset(&seen, 0, sizeof(seen));
	run(&scene, &seen);
	CHECK_THAT(seen.reads > 200, "%d readings", seen.reads);
	CHECK_THAT(seen.outside == 0, "slewed at %.0f ppb for %.0f s: %d of %d readings outside the interval, by up to %.0f ns", slew_ppb, slew_s,
		   seen.outside, seen.reads, seen.worst_ns);
}

/* Exchanges that are held up while the clocks go apart fast, with a server that is right. */
static void test_load(uint64_t seed, double rate_ppb)
{
	static struct seen seen;
	struct scene scene = { .world = new_world(seed, 0.3), .period_s = 1, .interval_s = 4, .lost_after_s = 600, .loaded = true };

	scene.world.rate_ppb = rate_ppb;
	scene.world.way_there_ns = scene.world.way_back_ns = 3000;
	scene.world.queue_ns = 300;
	memset(&seen, 0, sizeof(seen));
	run(&scene, &seen);
	CHECK_THAT(seen.reads > 800, "%d readings", seen.reads);
	CHECK_THAT(seen.outside == 0, "held up at %.0f ppb: %d of %d readings outside the interval, by up to %.0f ns", rate_ppb, seen.outside,
		   seen.reads, seen.worst_ns);
}

/* Ends of an exchange that lasts hold where its stamps are, while the clocks go on. */
static void test_long_exchange(void)
{
	const struct estimate_settings settings = estimate_default_settings();
	const double rate = 450e-6;

	for (int i = 0; i < 2; i++) {
		struct exchange_sample sample = { .t4_local_ns = 20 * NS_PER_MS };
		int64_t local_ns, low_ns, high_ns;

		/* Both ways take nothing; the server's two stamps are at one end of the wait. */
		sample.t2_utc_ns = sample.t3_utc_ns = i ? 0 : llround((double)sample.t4_local_ns * (1 + rate));
		estimate_interval(&sample, &settings, &local_ns, &low_ns, &high_ns);
		CHECK_THAT((double)low_ns <= rate * (double)local_ns && rate * (double)local_ns <= (double)high_ns,
			   "offset %.0f ns, interval %" PRId64 " .. %" PRId64 " ns", rate * (double)local_ns, low_ns, high_ns);
	}
}

static void test_certain_scenes(void)
{
	test_long_exchange();
	test_slew(100e3, 150);
	test_slew(200e3, 20);
	for (uint64_t seed = 1; seed <= 10; seed++) {
		test_load(seed, 450e3);
		test_load(seed, -450e3);
	}
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : SCENES;
	int reads = 0;

	if (argc == 1)
		test_certain_scenes();
	for (uint64_t seed = first; seed < first + count; seed++)
		reads += test_scene(seed);
	CHECK_THAT(reads > (int)count * 10, "%d readings of %d scenes", reads, (int)count);
	return check_result();
}
