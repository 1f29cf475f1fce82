# pffbench: `make bench` runs the comparison, `make test` the tests. Each makes its own environment first (docs/install.md).

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help env bench study check test test-all perf lint site clean

# MPI processes of `make bench` and `make study`: one for each processor that may be used here, four at most. More ranks than
# processors take turns, and more than four say little more about formats on one machine.
RANKS ?= $(shell n=$$(env -u OMP_NUM_THREADS nproc); echo $$((n < 4 ? n : 4)))
# Experiment of `make study`: a file in configs/studies, without its ending.
STUDY ?=
# Processes that run tests. Of four, one has the tests on Slurm, which wait more than they work, and so do planted delays.
WORKERS ?= 4
# Further arguments: of pffbench for `make bench` and `make study`, of pytest for `make test`.
ARGS ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## make the environment in .venv, or find that it is ready
	@setup/bootstrap

bench: ## compare the formats on one process for each core, four at most, or RANKS=4; ARGS="…" go to pffbench
	@setup/run bash -c 'exec "$$PFFBENCH_MPIEXEC" -n "$$0" python -m pffbench run "$$@"' $(RANKS) $(ARGS)

study: ## redo a published study, its numbers beside; STUDY=file-format-testing RANKS=4 ARGS="…"
	@setup/study "$(STUDY)" $(RANKS) $(ARGS)

check: lint ## style, types and the fast tests, in under a minute: before each commit
	@setup/run python -m pytest -q -n 2 -m "not long" tests/unit

test: ## run the tests, in WORKERS=4 processes; ARGS="…" go to pytest
test-all: ## run the same tests, and the rest of what they are a sample of (weekly in CI)
test-all: SELECTION = -m 'full or not full'
test test-all:
	@setup/bootstrap
	@setup/test-tools
	@setup/run python -m pytest -n $(WORKERS) --no-loadscope-reorder $(SELECTION) $(ARGS)

perf: ## measure what the harness costs, beside C and, where it is on PATH, IOR; ARGS="…" go to benchmarks/perf.py
	@setup/run python benchmarks/perf.py $(ARGS)

lint: ## check style and layout (ruff), types (mypy) and the directions of imports
	@setup/run ruff check
	@setup/run ruff format --check
	@setup/run mypy
	@setup/run lint-imports --no-cache

site: ## build the documentation into .build/site; a warning, such as of a dead link, is an error
	@NO_MKDOCS_2_WARNING=1 setup/run mkdocs build --strict

clean: ## remove the environment and what the builds left (.venv, .envs and .build)
	rm -rf .venv .envs .build
