# SPDX-License-Identifier: Apache-2.0
# The commands of the project. Each does its own set-up; `make` alone lists them.
#
# Variables of `make qualify`:
#   PROFILE        quick (seven minutes), ci (half an hour), nightly (hours), acceptance (many hours), soak (days)
#   BENCH          bench file
#   TARGETS        targets of the bench, one after the other; all where none is named
#   STACKS         network stacks, those of targets/KIND/stack: suites that use one run with each
#   SUITE          folder or file of suites
#   REQUIRE_ALL    yes: exit code 4 where all passed that was measured, but less was measured than asked
#   EARLIER        run folders of earlier attempts at the same, which the report lists
#   ROBOT_OPTIONS  further options, handed to Robot Framework as they are
# of `make show`, `make verify`, `make dossier`:
#   RUN            run folder, or its name below results/ (latest); of the last two several
# of `make test`:
#   TEST           files, folders or tests of Python (`path::name`), and options of pytest: only those are run
# of `make nightly`, BENCH besides:
#   PARTS          names and patterns of parts, all where none is given; `list` lists them, --again runs also what has a result
#   HOURS          the night ends after so many; what does not fit is left to the next (none: all is run)
#   FUZZ_S         seconds for each fuzz target and each campaign of made-up inputs
# and of `make trends`:
#   TRENDS_OPTIONS --store, --output, --bench, --target, --profile, --branch, --since

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PROFILE ?= quick
BENCH ?= hw/benches/virtual.yaml
TARGETS ?=
STACKS ?=
SUITE ?= robot/
REQUIRE_ALL ?= no
EARLIER ?=
ROBOT_OPTIONS ?=
RUN ?= latest
TEST ?=
PARTS ?=
HOURS ?=
FUZZ_S ?= 600
TRENDS_OPTIONS ?=
ifeq ($(origin BENCHWRIGHT_CACHE),undefined)
BENCHWRIGHT_CACHE := $(HOME)/.cache/benchwright
else
override BENCHWRIGHT_CACHE := $(value BENCHWRIGHT_CACHE)
endif

# The keyword libraries look for `robot` and the tools in PATH.
export PATH := $(CURDIR)/.build/venv/bin:$(PATH)
export BENCHWRIGHT_CACHE
PYTHON := .build/venv/bin/python

# What a caller gives is text: neither make nor the shell runs anything that stands in it. Recipes see it as G_NAME.
GIVEN := PROFILE BENCH TARGETS STACKS SUITE REQUIRE_ALL EARLIER ROBOT_OPTIONS RUN TEST PARTS HOURS FUZZ_S TRENDS_OPTIONS
unexport $(GIVEN)
$(foreach name,$(GIVEN),$(eval export G_$(name) := $$(value $(name))))
# A name that is not known is misspelt: what it should have said would be left out without a word.
KNOWN := $(GIVEN) BENCHWRIGHT_CACHE QUALIFY_EXIT_FILE QUALIFY_RUN_FILE
UNKNOWN := $(strip $(foreach name,$(.VARIABLES),$(if $(filter command line,$(origin $(name))),$(filter-out $(KNOWN) MAKEFLAGS MFLAGS MAKEOVERRIDES -*,$(name)))))
ifneq ($(UNKNOWN),)
$(error no such variable: $(UNKNOWN); there are $(GIVEN))
endif
# Split a variable into the array `words`, with quotes as a shell understands them.
split = readarray -d '' -t words < <(xargs -r printf '%s\0' <<<"$$G_$(1)")

.PHONY: help qualify show verify dossier test test-all nightly test-influxdb2 test-pdfa lint trends bench doctor setup images lock clean distclean

help: ## List the commands
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9%-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@sed -n '/^# Variables/,/^$$/s/^# \{0,1\}/  /p' $(firstword $(MAKEFILE_LIST))

# A caller that must tell exit codes apart names a file: make itself answers 2 for all of them. QUALIFY_RUN_FILE gets the run's folder.
qualify: ## Qualify a target on a bench and write its report (PROFILE, BENCH, TARGETS, STACKS, SUITE, REQUIRE_ALL, ROBOT_OPTIONS)
	@hw/host/setup.sh
	@$(call split,TARGETS); targets=("$${words[@]}"); $(call split,STACKS); stacks=("$${words[@]}"); $(call split,EARLIER); earlier=("$${words[@]}"); $(call split,ROBOT_OPTIONS); \
	$(PYTHON) -m resources.qualify --profile "$$G_PROFILE" --bench "$$G_BENCH" --suite "$$G_SUITE" --targets "$${targets[@]}" \
		--stacks "$${stacks[@]}" --earlier "$${earlier[@]}" $${QUALIFY_RUN_FILE:+--run-file "$$QUALIFY_RUN_FILE"} --require-all "$$G_REQUIRE_ALL" -- "$${words[@]}" || code=$$?; \
	[[ -z "$${QUALIFY_EXIT_FILE:-}" ]] || echo "$${code:-0}" >"$$QUALIFY_EXIT_FILE"; exit "$${code:-0}"

show: ## Print the verdict of a run, and what did not pass (RUN: a folder, or its name below results/)
	@hw/host/setup.sh
	@$(PYTHON) -m reports show "$$G_RUN"

verify: ## Find any changed byte of runs, and judge them again (RUN)
	@hw/host/setup.sh
	@$(call split,RUN); $(PYTHON) -m reports verify "$${words[@]}"

dossier: ## Write the acceptance dossier of runs as PDF (RUN)
	@hw/host/setup.sh
	@$(call split,RUN); $(PYTHON) -m reports dossier "$${words[@]}"

test: ## Run the tests that decide whether a change goes in, minutes; or only some (TEST)
	@hw/host/setup.sh --dev
	@$(call split,TEST); if [[ $${#words[@]} -gt 0 ]]; then $(PYTHON) -m pytest "$${words[@]}"; else tests/run.sh gate; fi

test-all: ## Run all tests: also for ARM and under Wine, on simulated benches, and those that keep a time
	@hw/host/setup.sh --dev
	@tests/run.sh all

# exec: when make is told to end, the night is, and keeps what is done.
nightly: ## Run what the gate leaves out, part by part, and go on where it was left (PARTS, HOURS, FUZZ_S, BENCH)
	@hw/host/setup.sh --dev
	@$(call split,PARTS); exec $(PYTHON) -m tests.night --fuzz-s "$$G_FUZZ_S" $${G_HOURS:+--hours "$$G_HOURS"} --bench "$$G_BENCH" "$${words[@]}"

test-influxdb2: ## Test delivery and dashboards against a real InfluxDB 2.7 (builds it, once)
	@hw/host/setup.sh --dev
	@tests/influxdb2/build/build.sh
	@$(PYTHON) -m pytest -m influxdb2 tests/influxdb2

test-pdfa: ## Check the dossier's PDF by veraPDF (needs Java and Maven, which fetches it once)
	@hw/host/setup.sh --dev
	@BENCHWRIGHT_REQUIRE_VERAPDF=1 $(PYTHON) -m pytest tests/reports/dossier/test_pdf_archive.py

lint: ## Check style, types, suites, compilers' warnings and the project's own rules
	@hw/host/setup.sh --dev
	@tests/lint/run.sh

trends: ## Make results/trends.html, the page of all stored runs (TRENDS_OPTIONS)
	@hw/host/setup.sh
	@$(call split,TRENDS_OPTIONS); $(PYTHON) -m dashboards trends "$${words[@]}"

bench: ## Run every benchmark
	@hw/host/setup.sh --dev
	@for name in $$($(PYTHON) -m bench); do $(PYTHON) -m bench "$$name" || [[ $$? -eq 3 ]]; done

bench-%: export G_NAME = $*
bench-%: ## Run one benchmark, bench/FOLDER/bench_%.py
	@hw/host/setup.sh --dev
	@$(PYTHON) -m bench "$$G_NAME"

doctor: ## List what this machine and the bench BENCH can measure, and how to fix the rest
	@python=$(PYTHON); [[ -x $$python ]] || python=/usr/bin/python3; $$python -m hw doctor "$$G_BENCH"

setup: ## Install and build everything now; the other commands do it by themselves
	@hw/host/setup.sh --dev

images: ## Build the images of the guests now; the other commands do it by themselves
	@hw/host/setup.sh
	@hw/host/images.sh

lock: ## Resolve the Python packages anew and write the locks
	@hw/host/setup.sh --dev
	@hw/host/lock.sh --upgrade

clean: ## Remove what was built here; results/ and the cache of guest images stay
	rm -rf .build

distclean: clean ## Remove the cache of guest images too
	@case "$${BENCHWRIGHT_CACHE##*/}" in \
	*benchwright*) rm -rf "$$BENCHWRIGHT_CACHE" ;; \
	*) echo "distclean: BENCHWRIGHT_CACHE=$$BENCHWRIGHT_CACHE is not named benchwright: remove it by hand" >&2; exit 2 ;; \
	esac
