/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of names by which a program of another language has points:
 *
 *	program = "analysis"
 *
 *	[[point]]
 *	group = "work"
 *	name = "bytes"
 *	kind = "data"                # event, data, interval, counter, histogram
 *	decoder = "<q"               # of data
 *	about = "a block; tag: its number"
 *
 *	[[point]]
 *	group = "work"
 *	name = "spread"
 *	kind = "histogram"
 *	low = 0                      # of a histogram: low <= value < high
 *	high = 100
 *	buckets = 10
 */
#ifndef BW_EVENTS_POINTS_FILE_H
#define BW_EVENTS_POINTS_FILE_H

#include "config/schema.h"
#include "events/layout.h"

/**
 * Read the points of a file's text.
 *
 * @param path  for errors
 * @return as points_file_read
 */
int64_t points_text_read(const char *path, const char *text, size_t length, struct bw_point_description **descriptions_out,
			 struct schema_error *error);
/**
 * Read the points of a file.
 *
 * @param descriptions_out  receives count descriptions, each checked; the caller frees them
 * @return their number, or -errno with the error in a line
 */
int64_t points_file_read(const char *path, struct bw_point_description **descriptions_out, struct schema_error *error);

#endif
