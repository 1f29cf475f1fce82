# pffbench: `make bench` runs the comparison, `make test` the tests. Each makes its own environment first (docs/install.md).

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help env bench study check test test-all perf lint site clean

# MPI processes of `make bench` and `make study`. Default: one per available processor, at most 4. More ranks than processors
# wait for each other, and more than four add little information about formats on one machine.
RANKS ?= $(shell n=$$(env -u OMP_NUM_THREADS nproc); echo $$((n < 4 ? n : 4)))
# Experiment of `make study`: a file in configs/studies, without its ending.
STUDY ?=
# Processes that run tests. One of the four runs the Slurm tests, which mostly sleep, as tests with planted delays do.
WORKERS ?= 6
# Further arguments: of pffbench for `make bench` and `make study`, of pytest for `make test`.
ARGS ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## make the environment in .venv, unless it is ready
	@setup/bootstrap

bench: ## compare the formats (RANKS: default one per core, at most 4; ARGS="…": options of pffbench)
	@setup/run bash -c 'exec "$$PFFBENCH_MPIEXEC" -n "$$0" python -m pffbench run "$$@"' $(RANKS) $(ARGS)

study: ## repeat a published study and compare its numbers (STUDY=file-format-testing RANKS=4 ARGS="…")
	@setup/study "$(STUDY)" $(RANKS) $(ARGS)

check: lint ## check style, types and the fast tests, in under a minute
	@setup/run python -m pytest -q -n 2 -m "not long" tests/unit

test: ## run the tests in WORKERS=6 processes (ARGS="…": options of pytest)
test-all: ## also run the tests marked full: complete matrices (weekly in CI)
test-all: SELECTION = -m 'full or not full'
test test-all:
	@setup/bootstrap
	@setup/test-tools
	@PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 setup/run python -m pytest -n $(WORKERS) --no-loadscope-reorder $(SELECTION) $(ARGS)

perf: ## measure the cost of the harness against C and, if it is on PATH, IOR (ARGS="…": options of benchmarks/perf.py)
	@setup/run python benchmarks/perf.py $(ARGS)

lint: ## check style (ruff), types (mypy) and imports (import-linter)
	@setup/run ruff check
	@setup/run ruff format --check
	@setup/run mypy
	@setup/run lint-imports --no-cache

site: ## build the documentation into .build/site (a warning, such as a dead link, is an error)
	@NO_MKDOCS_2_WARNING=1 setup/run mkdocs build --strict

clean: ## remove the environment and the files of builds (.venv, .envs and .build)
	rm -rf .venv .envs .build
