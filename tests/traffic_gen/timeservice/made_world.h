/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Made-up clocks and networks whose truth is known: a server whose rate walks, ways with queues, batches that are held up in one
 * direction or lean to one side.
 */
#ifndef BW_TEST_TIMESERVICE_MADE_WORLD_H
#define BW_TEST_TIMESERVICE_MADE_WORLD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time_units.h"
#include "../random.h"
#include "timeservice/estimate.h"

#define BEGIN_LOCAL_NS (INT64_C(1795284915) * NS_PER_S)

struct world {
	struct random random;
	double rate_ppb, walk_ppb; /* of the server against the counter */
	double offset_ns;          /* of the server against the counter, from ahead_ns on */
	int64_t ahead_ns;
	int64_t local_ns;
	int64_t way_there_ns, way_back_ns; /* the fastest */
	double queue_ns;           /* mean of what comes on top */
	double held_share;         /* of the batches that are held up in one direction */
	double held_there_ns, held_back_ns;
	double lean_ns;            /* by which a batch's way there takes longer and its way back shorter: standard deviation; no round trip tells */
	double leans_ns;           /* the last batch's */
	int64_t error_ns, root_distance_ns; /* of the server against UTC: what it is, and what the server says it is at most */
	int64_t held_ns;           /* by the server, besides what it always takes */
	int64_t heard_ns;          /* how long a program takes to hear of an answer, where it stamps itself; 0: the kernel stamps */
};

static void pass(struct world *world, int64_t duration_ns)
{
	double dt_s = (double)duration_ns / 1e9;
	double rate_before_ppb = world->rate_ppb;

	world->rate_ppb += world->walk_ppb * sqrt(dt_s) * random_normal(&world->random);
	world->offset_ns += (rate_before_ppb + world->rate_ppb) / 2 * dt_s +
			    world->walk_ppb * dt_s * sqrt(dt_s / 12) * random_normal(&world->random);
	world->local_ns += duration_ns;
}

static int64_t queued_ns(struct world *world)
{
	double ns = random_exponential(&world->random, world->queue_ns);

	if (random_unit(&world->random) < 0.05)
		ns += random_exponential(&world->random, 20 * world->queue_ns);
	return llround(ns);
}

static int64_t utc_ns(const struct world *world)
{
	return world->local_ns + world->ahead_ns + llround(world->offset_ns);
}

static int64_t server_ns(const struct world *world)
{
	return utc_ns(world) + world->error_ns;
}

static struct exchange_sample exchange(struct world *world)
{
	struct exchange_sample sample = {
		.error_ns = 60,
		.precision_ns = 30,
		.root_distance_ns = world->root_distance_ns,
		.kernel_stamps = !world->heard_ns,
	};
	int64_t error_ns = llround((2 * random_unit(&world->random) - 1) * 60);

	sample.t1_local_ns = world->local_ns + error_ns;
	pass(world, world->way_there_ns + queued_ns(world) + llround(world->held_there_ns + world->leans_ns));
	sample.t2_utc_ns = server_ns(world) + llround((2 * random_unit(&world->random) - 1) * 30);
	pass(world, 15000 + world->held_ns);
	sample.t3_utc_ns = server_ns(world) + llround((2 * random_unit(&world->random) - 1) * 30);
	pass(world, world->way_back_ns + queued_ns(world) + llround(world->held_back_ns - world->leans_ns) + world->heard_ns);
	sample.t4_local_ns = world->local_ns + llround((2 * random_unit(&world->random) - 1) * 60);
	return sample;
}

static struct world new_world(uint64_t seed, double walk_ppb)
{
	return (struct world){
		.random = { seed },
		.rate_ppb = (seed & 1 ? 50000 : -50000) + (double)seed,
		.walk_ppb = walk_ppb,
		.ahead_ns = INT64_C(7200) * NS_PER_S,
		.local_ns = BEGIN_LOCAL_NS,
		.way_there_ns = 60000,
		.way_back_ns = 60000,
		.queue_ns = 3000,
		.held_share = 0.1,
	};
}

#endif
