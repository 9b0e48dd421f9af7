/* SPDX-License-Identifier: Apache-2.0 */
/* Where a target is at any time: a function of its seed and the time alone, however late. Pure. */
#ifndef BW_LOOP_PATH_H
#define BW_LOOP_PATH_H

#include <stdint.h>

enum path_kind {
	PATH_STILL,
	PATH_CONSTANT, /* a straight line at constant speed; bounds reflect it */
	PATH_CIRCLE,   /* at constant speed */
	PATH_WANDER,   /* a uniform cubic B-spline of random places: smooth, at its speed at most */
};

enum { PATH_SPEED_MIN_Q8_S = 256, PATH_SPEED_MAX_Q8_S = 4000 * 256 };

/** A place in the world. */
struct place {
	int32_t x_q8, y_q8;
};

/** Made by path_make. */
struct path {
	enum path_kind kind;
	int64_t still_ns;       /* it rests at its place of time 0 for so long, then it begins; 0 unless it is set */
	uint64_t seed;
	struct place low, high; /* it does not leave them */
	struct place start;     /* of a circle: its centre */
	int32_t velocity_x_q8_s, velocity_y_q8_s; /* constant: at the start */
	int32_t radius_q8;      /* circle */
	uint32_t phase;         /* circle: at the start, in 1/2^32 turn */
	int clockwise;          /* circle, as the picture shows it */
	int64_t period_ns;      /* circle: of a turn; wander: from place to place */
};

/**
 * @param speed_q8_s  in 1/256 world pixel a second, PATH_SPEED_MIN_Q8_S..PATH_SPEED_MAX_Q8_S
 * @param low, high  bounds of the path; 0 <= low < high < 2^22
 */
void path_make(struct path *path, enum path_kind kind, uint64_t seed, int32_t speed_q8_s, struct place low, struct place high);
/** The place at a time. @param t_ns  since the camera's start, not negative */
struct place path_at(const struct path *path, int64_t t_ns);
/**
 * For how long a path is straight and its velocity constant, from a time on: to the next turn, or to the end of its rest. INT64_MAX: for
 * ever; 0: it is no such path.
 */
int64_t path_straight_ns(const struct path *path, int64_t t_ns);

#endif
