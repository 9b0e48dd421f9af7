/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line "counter -> PHC" from readings "counter, PHC, counter": a straight line through the middles of the shortest
 * readings of the last half minute. The PHC is linear between settings of its frequency; where it contradicts the line,
 * the line starts anew. Pure.
 */
#ifndef BW_EDGE_PHC_FIT_H
#define BW_EDGE_PHC_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "clock/card/page.h"

enum {
	PHC_FIT_POINTS = 600,  /* half a minute of 20 a second */
	PHC_FIT_SETTLED = 60,  /* points after which a line is good enough to be followed */
	PHC_FIT_CONTRADICTED = 3, /* points in succession that cannot be on the line: then it starts anew */
};

struct phc_point {
	uint64_t counter; /* middle of the reading */
	int64_t phc_ns;
	uint64_t width;   /* of the reading, in ticks */
};

struct phc_fit {
	double ns_per_tick; /* nominal */
	struct phc_point points[PHC_FIT_POINTS];
	int count, next;
	int contradictions;
	/* The current line, around a point of its own. */
	bool fitted;
	uint64_t origin;
	int64_t origin_phc_ns;
	double offset_ns, rate;    /* PHC = origin_phc_ns + offset_ns + rate * (counter - origin) */
	double deviation_ns;       /* of the points used, about the line */
	uint64_t taken, restarts, published;
	struct histogram *residuals; /* of the points used, against the line before them; NULL: not kept */
	/* The shortest reading of the current burst. */
	bool burst;
	struct phc_point shortest;
};

void phc_fit_init(struct phc_fit *fit, double ns_per_tick, struct histogram *residuals);
/** Take one reading of the current burst. @return 0, or -EINVAL: `after` is before `before` */
int phc_fit_take(struct phc_fit *fit, uint64_t before, int64_t phc_ns, uint64_t after);
/**
 * End a burst and make the line; unit and source are set, the bound is twice the points' deviation.
 *
 * @return 0; -ENODATA: the burst had no reading; -EAGAIN: there are not enough points yet
 */
int phc_fit_line(struct phc_fit *fit, struct card_line *line);

#endif
