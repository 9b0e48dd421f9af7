/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/world.h"

#include <stdlib.h>

#include "loop/camera/hash.h"

/* The texture: values at the corners of cells, smooth between them; cells of four sizes, their weights of 16. */
enum { CELL_MAX_PX = 64 };
static const struct octave {
	int32_t cell_px;
	uint32_t weight;
} octaves[] = { { CELL_MAX_PX, 8 }, { 32, 4 }, { 16, 2 }, { 8, 2 } };
enum { OCTAVES = sizeof(octaves) / sizeof(octaves[0]), TEXTURE_LOW = 40 };

/* What of a seed is used for what; targets come after them. */
enum { TEXTURE_SEED, TARGET_SEEDS = TEXTURE_SEED + OCTAVES };

struct world_settings world_settings_default(uint64_t seed, enum path_kind kind, int32_t speed_q8_s)
{
	return (struct world_settings){
		.seed = seed,
		.width_px = 2048,
		.height_px = 1536,
		.targets = 1,
		.target = { { .kind = kind, .speed_q8_s = speed_q8_s, .radius_px = TARGET_RADIUS_PX, .disc = 230, .ring = 20 } },
	};
}

/* From 0 to 256 without a kink at either end: 3u^2 - 2u^3. */
static uint32_t eased_q8(int32_t at, int32_t cell_px)
{
	uint32_t u = (uint32_t)(at * 256 / cell_px);

	return u * u * (768 - 2 * u) >> 16;
}

/* The value of a corner, 0..255. */
static uint32_t corner(uint64_t seed, int32_t column, int32_t row)
{
	return (uint32_t)(hash_at(seed, (uint64_t)row << 32 | (uint32_t)column) >> 56);
}

static void add_octave(uint32_t *sums, int32_t width_px, int32_t y, const struct octave *octave, uint64_t seed)
{
	int32_t cell_px = octave->cell_px, row = y / cell_px;
	uint32_t down = eased_q8(y % cell_px, cell_px), across[CELL_MAX_PX] = { 0 };

	for (int32_t i = 0; i < cell_px; i++)
		across[i] = eased_q8(i, cell_px);
	for (int32_t column = 0; column * cell_px < width_px; column++) {
		uint32_t left = corner(seed, column, row) * (256 - down) + corner(seed, column, row + 1) * down;
		uint32_t right = corner(seed, column + 1, row) * (256 - down) + corner(seed, column + 1, row + 1) * down;
		int32_t begin = column * cell_px, end = begin + cell_px < width_px ? begin + cell_px : width_px;

		for (int32_t x = begin; x < end; x++)
			sums[x] += ((left * (256 - across[x - begin]) + right * across[x - begin]) >> 16) * octave->weight;
	}
}

static void fill_texture(struct world *world, uint64_t seed)
{
	for (int32_t y = 0; y < world->height_px; y++) {
		uint8_t *row = world->texture + (size_t)y * (size_t)world->width_px;
		uint32_t sums[WORLD_SIDE_MAX_PX] = { 0 };

		for (uint64_t i = 0; i < OCTAVES; i++)
			add_octave(sums, world->width_px, y, &octaves[i], hash_at(seed, TEXTURE_SEED + i));
		for (int32_t x = 0; x < world->width_px; x++)
			row[x] = (uint8_t)(TEXTURE_LOW + sums[x] / 32);
	}
}

static const char *make_target(struct world *world, const struct target_settings *settings, struct target *target, uint64_t seed)
{
	int32_t edge_q8 = settings->radius_px * 256 * 3 / 2;

	if (settings->radius_px < TARGET_RADIUS_MIN_PX || settings->radius_px > TARGET_RADIUS_MAX_PX)
		return "a target's radius has 4 to 64 pixels";
	if (settings->kind != PATH_STILL &&
	    (settings->speed_q8_s < PATH_SPEED_MIN_Q8_S || settings->speed_q8_s > PATH_SPEED_MAX_Q8_S))
		return "a target's speed has 1 to 4000 pixels a second";
	*target = (struct target){ .radius_q8 = settings->radius_px * 256, .disc = settings->disc, .ring = settings->ring };
	path_make(&target->path, settings->kind, seed, settings->speed_q8_s, (struct place){ edge_q8, edge_q8 },
		  (struct place){ (world->width_px - 1) * 256 - edge_q8, (world->height_px - 1) * 256 - edge_q8 });
	target->path.still_ns = settings->still_ns;
	return NULL;
}

const char *world_make(struct world *world, const struct world_settings *settings)
{
	*world = (struct world){ .width_px = settings->width_px, .height_px = settings->height_px, .targets = settings->targets };
	if (world->width_px < WORLD_SIDE_MIN_PX || world->width_px > WORLD_SIDE_MAX_PX || world->height_px < WORLD_SIDE_MIN_PX ||
	    world->height_px > WORLD_SIDE_MAX_PX)
		return "a world has 256 to 8192 pixels a side";
	if (world->targets < 0 || world->targets > WORLD_TARGETS_MAX)
		return "a world has 0 to 8 targets";
	for (int32_t i = 0; i < world->targets; i++) {
		const char *refused = make_target(world, &settings->target[i], &world->target[i],
						  hash_at(settings->seed, TARGET_SEEDS + (uint64_t)i));

		if (refused)
			return refused;
	}
	world->texture = malloc((size_t)world->width_px * (size_t)world->height_px);
	if (!world->texture)
		return "no memory for a world of this size";
	fill_texture(world, settings->seed);
	return NULL;
}

void world_free(struct world *world)
{
	free(world->texture);
	world->texture = NULL;
}
