/* SPDX-License-Identifier: Apache-2.0 */
/* The verb camera: its options, its threads, and what it answers. */
#include "loop/camera/camera.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "loop/camera/video.h"
#include "loop/verbs.h"

#define TOOL "bw-loop camera"
#define TICK_NS (10 * NS_PER_MS) /* between two looks at what is to be written */

enum { THREADS = 4, REASONS = 8, OWN_OPTIONS = 18, BACKLOG = 1 };

struct camera_options {
	const char *serve, *commands, *truth, *look, *congestion, *v4l2;
	int64_t pictures_per_s, pictures, segment_bytes, queue, pan_px_s, zoom_q8, zoom_speed_q8, motor_delay_ms, timeout_ms;
	bool is_open, is_reversed, waits_for_client;
};

static void write_ready(const struct camera *camera)
{
	char text[ADDRESS_TEXT_BYTES];
	struct address local;
	struct json json;

	json_init(&json, stdout);
	answer_begin(&json, "ready", TOOL);
	if (!port_socket_local(camera->picture_listener, &local))
		json_string(&json, "address", address_format(&local, text));
	if (camera->has_commands && !port_socket_local(camera->command_listener, &local))
		json_string(&json, "commands_address", address_format(&local, text));
	json_int(&json, "tai_utc_s", camera->side.tai.tai_utc_s);
	answer_end(&json);
}

/* The first line of the truth file, once the camera has started. */
static void write_truth_head(struct camera *camera, struct scene_options *chosen)
{
	struct json *json = &camera->truth.json;

	if (!camera->truth.file)
		return;
	answer_begin(json, "camera", TOOL);
	json_string(json, "version", BW_VERSION);
	json_int(json, "start_monotonic_ns", camera->start.monotonic_ns);
	json_int(json, "start_realtime_ns", camera->start.realtime_ns);
	json_int(json, "start_tai_ns", camera->start.tai_ns);
	json_int(json, "start_bound_ns", camera->start.bound_ns);
	json_int(json, "period_ns", camera->period_ns);
	json_int(json, "width_px", camera->scene.camera.width_px);
	json_int(json, "height_px", camera->scene.camera.height_px);
	if (!camera->video) {
		json_int(json, "pan_q8_s", camera->mount.limits.pan_q8_s);
		json_int(json, "tilt_q8_s", camera->mount.limits.tilt_q8_s);
		json_int(json, "zoom_q8_s", camera->mount.limits.zoom_q8_s);
		json_int(json, "motor_delay_ns", camera->motor_delay_ns);
	}
	if (*camera->congestion)
		json_string(json, "congestion", camera->congestion);
	json_bool(json, "open_loop", camera->is_open);
	json_bool(json, "reversed", camera->is_reversed);
	if (camera->video)
		video_write(json, camera);
	else
		scene_write_words(json, chosen);
	if (answer_end(json))
		camera->truth.has_failed = true;
}

static void write_truth_end(struct camera *camera)
{
	struct json *json = &camera->truth.json;

	truth_write(&camera->truth);
	if (!camera->truth.file)
		return;
	answer_begin(json, "end", TOOL);
	json_uint(json, "pictures", atomic_load(&camera->captured));
	json_uint(json, "commands", camera->received);
	json_uint(json, "lacks", truth_lacks(&camera->truth));
	if (answer_end(json))
		camera->truth.has_failed = true;
}

/* Reasons why the run is not valid, each once. */
static size_t find_reasons(const struct camera *camera, const char *reasons[static REASONS])
{
	const char *const all[REASONS] = {
		camera->capture_failed,
		camera->server_failed,
		camera->receiver_failed,
		camera->refused.all ? "commands were refused" : NULL,
		truth_lacks(&camera->truth) ? "the truth file lacks lines" : NULL,
		camera->truth.has_failed ? "the truth file could not be written" : NULL,
		camera->watch.count ? "the local clock was stepped" : NULL,
		camera->is_stamped_ahead ? "the driver stamped pictures later than it gave them" : NULL,
	};
	size_t count = 0;

	for (size_t i = 0; i < REASONS; i++) {
		bool is_new = all[i] != NULL;

		for (size_t j = 0; j < count; j++)
			is_new = is_new && strcmp(reasons[j], all[i]) != 0;
		if (is_new)
			reasons[count++] = all[i];
	}
	return count;
}

static int write_result(const struct camera *camera, const struct port_scheduling *scheduling)
{
	uint32_t captured = atomic_load(&camera->captured);
	const char *reasons[REASONS];
	size_t count = find_reasons(camera, reasons);
	struct json json;

	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_object_open(&json, "pictures");
	json_uint(&json, "captured", captured);
	json_uint(&json, "missed", camera->missed);
	json_uint(&json, "overrun", camera->queue.overrun);
	json_uint(&json, "sent", camera->sent);
	json_uint(&json, "discarded", camera->discarded);
	json_uint(&json, "unsent", camera->unsent);
	json_uint(&json, "queue", camera->queue.length);
	json_uint(&json, "queue_most", camera->queue.most);
	json_object_close(&json);
	json_object_open(&json, "commands");
	json_uint(&json, "received", camera->received);
	json_uint(&json, "refused", camera->refused.all);
	refusals_write(&json, "refused_by_reason", &camera->refused);
	json_uint(&json, "obeyed", camera->obeyed);
	json_uint(&json, "ignored", camera->ignored);
	json_uint(&json, "dropped", camera->dropped);
	json_uint(&json, "clamped", camera->clamped);
	json_object_close(&json);
	answer_validity(&json, captured == camera->pictures && !count, reasons, count);
	json_array_open(&json, "clock_steps");
	summary_steps(&json, &camera->watch);
	json_array_close(&json);
	summary_scheduling(&json, scheduling);
	answer_end(&json);
	if (camera->server_error)
		fprintf(stderr, TOOL ": %s: %s\n", camera->server_failed, strerror(-camera->server_error));
	return count ? EXIT_INVALID : EXIT_DONE;
}

static int run_threads(struct camera *camera, struct scene_options *chosen, struct port_scheduling *scheduling)
{
	static const struct {
		const char *name;
		void (*run)(void *);
	} threads[THREADS] = { { "serve", camera_serve }, { "receive", camera_receive }, { "motor", camera_motor }, { "capture", camera_capture } };
	struct port_thread *started[THREADS];
	int count = 0, code = EXIT_DONE, locked = port_memory_lock();
	bool has_head = false;

	atomic_store(&camera->running, THREADS);
	for (; count < THREADS; count++) {
		int err = port_thread_start(threads[count].name, (int)camera->side.options.priority, (int)camera->side.options.cpu,
					    threads[count].run, camera, &started[count]);

		if (!err)
			continue;
		code = side_fail(&camera->side, "cannot start", "a thread", err);
		camera->capture_failed = "a thread could not be started";
		atomic_store(&camera->is_all_captured, true);
		picture_queue_end(&camera->queue);
		atomic_fetch_sub(&camera->running, THREADS - count);
		break;
	}
	if (count)
		*scheduling = *port_thread_scheduling(started[count - 1]);
	if (locked)
		summary_add_note(scheduling, "memory is not locked", -locked);
	while (atomic_load(&camera->running)) {
		port_sleep_ns(TICK_NS);
		if (!atomic_load(&camera->has_started))
			continue;
		if (!has_head)
			write_truth_head(camera, chosen);
		has_head = true;
		truth_write(&camera->truth);
	}
	while (count)
		port_thread_join(started[--count]);
	if (!code && !has_head)
		write_truth_head(camera, chosen);
	if (!code)
		write_truth_end(camera);
	return code;
}

/* "X,Y" in pixels of the world; NULL: the target's place at the start. */
static int make_mount(struct camera *camera, const struct camera_options *options)
{
	const struct scene *scene = &camera->scene;
	const struct mount_limits limits = {
		.pan_q8_s = (int32_t)options->pan_px_s * 256, .tilt_q8_s = (int32_t)options->pan_px_s * 256,
		.zoom_q8_s = (int32_t)options->zoom_speed_q8, .zoom_min_q8 = ZOOM_MIN_Q8, .zoom_max_q8 = ZOOM_MAX_Q8, .world_width_px = scene->world.width_px,
		.world_height_px = scene->world.height_px, .width_px = scene->camera.width_px, .height_px = scene->camera.height_px,
	};
	struct place place = path_at(&scene->world.target[0].path, 0);

	if (options->look) {
		const char *comma = strchr(options->look, ',');
		char first[16];
		int64_t x, y;

		if (!comma || (size_t)(comma - options->look) >= sizeof(first))
			return option_refuse(TOOL, "--look", options->look, "X,Y in pixels of the world");
		snprintf(first, sizeof(first), "%.*s", (int)(comma - options->look), options->look);
		if (option_parse_int(first, 0, scene->world.width_px - 1, &x) ||
		    option_parse_int(comma + 1, 0, scene->world.height_px - 1, &y))
			return option_refuse(TOOL, "--look", options->look, "X,Y in pixels of the world");
		place = (struct place){ (int32_t)x * 256, (int32_t)y * 256 };
	}
	mount_make(&camera->mount, &limits, (struct pose){ place.x_q8, place.y_q8, (int32_t)options->zoom_q8 });
	return EXIT_DONE;
}

static int listen_at(struct camera *camera, const char *text, const char *option, port_socket *listener)
{
	struct address local;
	int err;

	if (address_parse(text, &local))
		return option_refuse(TOOL, option, text, ADDRESS_FORM);
	err = port_tcp_listen(&local, BACKLOG, listener);
	return err ? side_fail(&camera->side, "cannot listen at", text, err) : EXIT_DONE;
}

/* Of the connection that carries pictures; NULL: the system's choice. Which it is goes into the truth file. */
static int choose_congestion(struct camera *camera, const char *name)
{
	int err = name ? port_congestion_set(camera->picture_listener, name) : 0;

	if (err)
		return side_fail(&camera->side, "the kernel has no congestion control", name, err);
	if (port_congestion_read(camera->picture_listener, camera->congestion))
		*camera->congestion = '\0';
	return EXIT_DONE;
}

/* Of the connection that carries pictures; 0: as long as its way takes. */
static int choose_segments(struct camera *camera, int64_t bytes)
{
	int err = bytes ? port_segment_set(camera->picture_listener, (int)bytes) : 0;

	return err ? side_fail(&camera->side, "the system does not take this", "--segment-bytes", err) : EXIT_DONE;
}

static int open_all(struct camera *camera, const struct camera_options *options)
{
	const struct render_settings *settings = &camera->scene.camera;
	size_t picture_bytes = PICTURE_HEADER_BYTES + (size_t)settings->width_px * (size_t)settings->height_px;
	int err, code = camera->video ? EXIT_DONE : make_mount(camera, options);

	if (!code)
		code = listen_at(camera, options->serve, "--serve", &camera->picture_listener);
	if (!code)
		code = choose_congestion(camera, options->congestion);
	if (!code)
		code = choose_segments(camera, options->segment_bytes);
	if (!code && options->commands)
		code = listen_at(camera, options->commands, "--commands", &camera->command_listener);
	if (code)
		return code;
	err = picture_queue_create(&camera->queue, (uint32_t)options->queue, picture_bytes);
	if (!err)
		err = ring_create(&camera->orders, ORDERS, sizeof(struct order));
	if (!err)
		err = port_bell_create(&camera->bell);
	if (!err)
		err = port_lock_create(&camera->mount_lock);
	if (err)
		return side_fail(&camera->side, "no memory for", "pictures", err);
	err = truth_open(&camera->truth, options->truth);
	return err ? side_fail(&camera->side, "cannot write", options->truth, err) : EXIT_DONE;
}

static void close_all(struct camera *camera)
{
	const port_socket listeners[] = { camera->picture_listener, camera->command_listener };

	for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++)
		if (listeners[i] != PORT_SOCKET_NONE)
			port_socket_close(listeners[i]);
	stream_close(&camera->client);
	stream_close(&camera->commander);
	picture_queue_destroy(&camera->queue);
	ring_destroy(&camera->orders);
	port_bell_destroy(camera->bell);
	port_lock_destroy(camera->mount_lock);
	truth_close(&camera->truth);
	port_video_close(camera->video);
	scene_free(&camera->scene);
}

static int run(struct camera *camera, const struct camera_options *options, struct scene_options *scene)
{
	struct port_scheduling scheduling = { .cpu = PORT_CPU_ANY };
	int code;

	port_stop_install();
	port_tai_init(&camera->side.tai, (int)camera->side.options.tai_utc_s);
	stepwatch_init(&camera->watch, &camera->side.tai);
	code = open_all(camera, options);
	if (!code) {
		write_ready(camera);
		code = run_threads(camera, scene, &scheduling);
	}
	if (!code)
		code = video_end(camera);
	if (!code)
		code = write_result(camera, &scheduling);
	return code;
}

static int run_camera(const struct camera_options *options, struct scene_options *scene, const struct side_options *chosen)
{
	static struct camera camera;
	int code;

	if (!options->serve)
		return option_refuse(TOOL, "--serve", NULL, "ADDRESS:PORT");
	if (options->is_open && options->is_reversed)
		return option_refuse(TOOL, "--open-loop, --reversed", NULL, "one of them, or none");
	if (!options->v4l2 && scene->exposure_us > 1000000 / options->pictures_per_s)
		return option_refuse(TOOL, "--exposure-us", NULL, "at most the period from a picture to the next");
	camera.side.tool = TOOL;
	camera.side.options = *chosen;
	camera.period_ns = NS_PER_S / options->pictures_per_s;
	camera.pictures = (uint32_t)options->pictures;
	camera.motor_delay_ns = options->motor_delay_ms * NS_PER_MS;
	camera.timeout_ns = options->timeout_ms * NS_PER_MS;
	camera.v4l2 = options->v4l2;
	camera.is_open = options->is_open || options->v4l2;
	camera.is_reversed = options->is_reversed;
	camera.waits_for_client = options->waits_for_client;
	camera.has_commands = options->commands != NULL;
	camera.picture_listener = camera.command_listener = camera.client.sock = camera.commander.sock = PORT_SOCKET_NONE;
	code = camera.v4l2 ? video_open(&camera, scene, (int32_t)options->pictures_per_s) : scene_make(&camera.scene, scene, TOOL);
	if (code)
		return code;
	code = run(&camera, options, scene);
	close_all(&camera);
	return code;
}

int verb_camera(int argc, char **argv)
{
	struct camera_options chosen = { .pictures_per_s = 25, .pictures = 250, .queue = 8, .pan_px_s = 1000, .zoom_q8 = ZOOM_ONE_Q8, .zoom_speed_q8 = 1024,
					 .timeout_ms = 10000 };
	struct scene_options scene = scene_defaults;
	struct side_options side = side_defaults;
	struct option options[OWN_OPTIONS + SCENE_OPTIONS + SIDE_SCHEDULING_OPTIONS + 1] = {
		{ .name = "serve", .kind = OPTION_TEXT, .target = &chosen.serve, .argument = "ADDRESS:PORT",
		  .help = "send pictures to the first who connects there; nobody there: they are discarded" },
		{ .name = "commands", .kind = OPTION_TEXT, .target = &chosen.commands, .argument = "ADDRESS:PORT",
		  .help = "take commands of the first who connects there (default: none)" },
		{ .name = "pictures", .kind = OPTION_INT, .target = &chosen.pictures, .min = 1, .max = 100000000, .argument = "N",
		  .help = "how many, 1..100000000 (default 250)" },
		{ .name = "pictures-per-s", .kind = OPTION_INT, .target = &chosen.pictures_per_s, .min = 1, .max = 1000,
		  .argument = "N", .help = "1..1000 (default 25)" },
		{ .name = "queue", .kind = OPTION_INT, .target = &chosen.queue, .min = 1, .max = PICTURE_QUEUE_MAX, .argument = "N",
		  .help = "pictures that may wait to be sent, 1..256 (default 8); what finds no room is lost" },
		{ .name = "congestion", .kind = OPTION_TEXT, .target = &chosen.congestion, .argument = "NAME",
		  .help = "of the pictures' connection, such as cubic; Linux (default: the system's)" },
		{ .name = "segment-bytes", .kind = OPTION_INT, .target = &chosen.segment_bytes, .min = 88, .max = 32767, .argument = "N",
		  .help = "TCP's MSS on the pictures' connection, 88..32767, 1460 for frames of 1500; Linux (default: what the way takes)" },
		{ .name = "wait-for-client", .kind = OPTION_FLAG, .target = &chosen.waits_for_client,
		  .help = "start once somebody is there for the pictures, and for commands (default: at once)" },
		{ .name = "truth", .kind = OPTION_TEXT, .target = &chosen.truth, .argument = "FILE",
		  .help = "what the camera alone knows: settings, poses, commands (default: none)" },
		{ .name = "v4l2", .kind = OPTION_TEXT, .target = &chosen.v4l2, .argument = "DEVICE",
		  .help = "pictures of a real camera, such as /dev/video0; commands are not obeyed; Linux (default: the synthetic camera)" },
		{ .name = "look", .kind = OPTION_TEXT, .target = &chosen.look, .argument = "X,Y",
		  .help = "where it looks first, in pixels of the world (default: at the target)" },
		{ .name = "zoom-q8", .kind = OPTION_INT, .target = &chosen.zoom_q8, .min = ZOOM_MIN_Q8, .max = ZOOM_MAX_Q8,
		  .argument = "N", .help = "its zoom first, in 1/256, 64..4096 (default 256)" },
		{ .name = "pan-px-s", .kind = OPTION_INT, .target = &chosen.pan_px_s, .min = 1, .max = 1000000, .argument = "N",
		  .help = "speed of pan and of tilt, pixels of the world a second (default 1000)" },
		{ .name = "zoom-speed-q8", .kind = OPTION_INT, .target = &chosen.zoom_speed_q8, .min = 1, .max = 1000000, .argument = "N",
		  .help = "speed of zoom, in 1/256 a second, 1..1000000 (default 1024)" },
		{ .name = "motor-delay-ms", .kind = OPTION_INT, .target = &chosen.motor_delay_ms, .min = 0, .max = 10000,
		  .argument = "N", .help = "from a command's arrival until the motor is told, 0..10000 ms (default 0)" },
		{ .name = "open-loop", .kind = OPTION_FLAG, .target = &chosen.is_open, .help = "commands are received, and not obeyed" },
		{ .name = "reversed", .kind = OPTION_FLAG, .target = &chosen.is_reversed,
		  .help = "they are obeyed the wrong way round, seen from where it looks" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 3600000, .argument = "N",
		  .help = "for a client to come, to take a picture, to end, 1..3600000 ms (default 10000)" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--serve ADDRESS:PORT [--commands ADDRESS:PORT] [options]",
		.about = "A camera over TCP, synthetic or real: pictures of a moving target out, commands where to look in. docs/control-loops.md has\n"
			 "the format of both. bw-events records when each picture was captured and sent, and when the motor was told.\n",
		.options = options,
	};
	int parsed;

	scene_add_options(options + OWN_OPTIONS, &scene);
	side_add_scheduling_options(options + OWN_OPTIONS + SCENE_OPTIONS, &side);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	if (chosen.v4l2 && video_check_options(argc, argv, TOOL))
		return EXIT_BAD_INPUT;
	return run_camera(&chosen, &scene, &side);
}
