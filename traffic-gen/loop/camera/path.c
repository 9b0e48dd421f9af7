/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/path.h"

#include "loop/camera/fixed.h"
#include "loop/camera/hash.h"

static const int64_t s_ns = INT64_C(1000000000), two_pi_s_ns = INT64_C(6283185308);

/* What of a seed is used for what; the places of a wandering path come after them. */
enum { START_X, START_Y, HEADING, RADIUS, SENSE, PLACES };

static struct place place_between(uint64_t seed, uint64_t at, struct place low, struct place high)
{
	return (struct place){ hash_between(seed, at, low.x_q8, high.x_q8), hash_between(seed, at + 1, low.y_q8, high.y_q8) };
}

static void make_circle(struct path *path, int32_t speed_q8_s)
{
	int32_t width_q8 = path->high.x_q8 - path->low.x_q8, height_q8 = path->high.y_q8 - path->low.y_q8;
	int32_t most_q8 = (width_q8 < height_q8 ? width_q8 : height_q8) / 2, radius_q8;

	path->radius_q8 = radius_q8 = hash_between(path->seed, RADIUS, most_q8 / 2, most_q8);
	path->start = place_between(path->seed, START_X, (struct place){ path->low.x_q8 + radius_q8, path->low.y_q8 + radius_q8 },
				    (struct place){ path->high.x_q8 - radius_q8, path->high.y_q8 - radius_q8 });
	path->phase = (uint32_t)hash_at(path->seed, HEADING);
	path->clockwise = (int)(hash_at(path->seed, SENSE) & 1);
	path->period_ns = radius_q8 * two_pi_s_ns / speed_q8_s + 1;
}

void path_make(struct path *path, enum path_kind kind, uint64_t seed, int32_t speed_q8_s, struct place low, struct place high)
{
	uint32_t heading = (uint32_t)hash_at(seed, HEADING);
	int64_t width_q8 = high.x_q8 - low.x_q8, height_q8 = high.y_q8 - low.y_q8;

	*path = (struct path){ .kind = kind, .seed = seed, .low = low, .high = high, .start = place_between(seed, START_X, low, high) };
	if (kind == PATH_CONSTANT) {
		path->velocity_x_q8_s = (int32_t)(speed_q8_s * cosine_q30(heading) / (INT64_C(1) << 30));
		path->velocity_y_q8_s = (int32_t)(speed_q8_s * sine_q30(heading) / (INT64_C(1) << 30));
	} else if (kind == PATH_CIRCLE) {
		make_circle(path, speed_q8_s);
	} else if (kind == PATH_WANDER) {
		/* Two places are a diagonal apart at most, and the spline is never faster than from place to place. */
		path->period_ns = (square_root(width_q8 * width_q8 + height_q8 * height_q8) + 1) * s_ns / speed_q8_s + 1;
	}
}

/* One coordinate of a straight line between two mirrors. */
static int32_t reflected(int32_t start, int32_t velocity_q8_s, int32_t low, int32_t high, int64_t t_ns)
{
	int64_t span = high - low, on = start - low + amount_after(velocity_q8_s, t_ns);

	on -= floor_div(on, 2 * span) * 2 * span;
	return (int32_t)(low + (on <= span ? on : 2 * span - on));
}

static struct place on_circle(const struct path *path, int64_t t_ns)
{
	int64_t on_ns = t_ns % path->period_ns, radius_q8 = path->radius_q8, one = INT64_C(1) << 30;
	int64_t coarse = on_ns * 65536 / path->period_ns, rest = on_ns * 65536 % path->period_ns;
	uint32_t turned = (uint32_t)(coarse * 65536 + rest * 65536 / path->period_ns);
	uint32_t angle = path->clockwise ? path->phase + turned : path->phase - turned;

	return (struct place){ (int32_t)(path->start.x_q8 + floor_div(radius_q8 * cosine_q30(angle) + one / 2, one)),
			       (int32_t)(path->start.y_q8 + floor_div(radius_q8 * sine_q30(angle) + one / 2, one)) };
}

static struct place on_spline(const struct path *path, int64_t t_ns)
{
	const int64_t one = INT64_C(1) << 30, step = t_ns / path->period_ns, on_ns = t_ns % path->period_ns;
	int64_t coarse = on_ns * 32768 / path->period_ns, rest = on_ns * 32768 % path->period_ns;
	int64_t u = coarse * 32768 + rest * 32768 / path->period_ns; /* 0..1 in 1/2^30 */
	int64_t square = u * u / one, cube = square * u / one;
	int64_t first = one - 3 * u + 3 * square - cube, second = 4 * one - 6 * square + 3 * cube, last = cube;
	int64_t weights[4] = { first, second, 6 * one - first - second - last, last }; /* of 6 */
	int64_t x = 3 * one, y = 3 * one;

	for (int i = 0; i < 4; i++) {
		struct place each = place_between(path->seed, PLACES + 2 * ((uint64_t)step + (uint64_t)i), path->low, path->high);

		x += each.x_q8 * weights[i];
		y += each.y_q8 * weights[i];
	}
	return (struct place){ (int32_t)clamp(x / (6 * one), path->low.x_q8, path->high.x_q8),
			       (int32_t)clamp(y / (6 * one), path->low.y_q8, path->high.y_q8) };
}

struct place path_at(const struct path *path, int64_t t_ns)
{
	t_ns = t_ns > path->still_ns ? t_ns - path->still_ns : 0;
	switch (path->kind) {
	case PATH_CONSTANT:
		return (struct place){
			reflected(path->start.x_q8, path->velocity_x_q8_s, path->low.x_q8, path->high.x_q8, t_ns),
			reflected(path->start.y_q8, path->velocity_y_q8_s, path->low.y_q8, path->high.y_q8, t_ns),
		};
	case PATH_CIRCLE:
		return on_circle(path, t_ns);
	case PATH_WANDER:
		return on_spline(path, t_ns);
	case PATH_STILL:
		break;
	}
	return path->start;
}

/* From t_ns to the next mirror, of one coordinate; rounded down. */
static int64_t to_mirror_ns(int32_t start, int32_t velocity_q8_s, int32_t low, int32_t high, int64_t t_ns)
{
	int64_t span = high - low, on = start - low + amount_after(velocity_q8_s, t_ns), passed = on - floor_div(on, span) * span;

	if (!velocity_q8_s)
		return INT64_MAX;
	if (velocity_q8_s > 0)
		return (span - passed - 1) * s_ns / velocity_q8_s;
	return passed * s_ns / -velocity_q8_s;
}

int64_t path_straight_ns(const struct path *path, int64_t t_ns)
{
	int64_t x_ns, y_ns;

	if (path->kind == PATH_STILL)
		return INT64_MAX;
	if (t_ns < path->still_ns)
		return path->still_ns - t_ns;
	if (path->kind != PATH_CONSTANT)
		return 0;
	t_ns -= path->still_ns;
	x_ns = to_mirror_ns(path->start.x_q8, path->velocity_x_q8_s, path->low.x_q8, path->high.x_q8, t_ns);
	y_ns = to_mirror_ns(path->start.y_q8, path->velocity_y_q8_s, path->low.y_q8, path->high.y_q8, t_ns);
	return x_ns < y_ns ? x_ns : y_ns;
}
