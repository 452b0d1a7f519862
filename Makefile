# What a contributor and a CI machine run. `make` alone lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

# The interpreter that .venv is made with, 3.11 or newer; and what pytest is told besides.
PYTHON ?= python3
ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
PYTEST = $(PY) -m pytest -q
# A worker a core, four at most: each holds a device, and NumPy threads of its own.
PARALLEL := -n auto --maxprocesses 4 --dist worksteal
# A stamp for each set of extras. Its name knows the folder: a moved checkout is installed anew.
READY := $(VENV)/ready-$(shell pwd | cksum | cut -d ' ' -f 1)

.PHONY: help demo test browser nightly check lint types quick fmt golden coverage vulkan clean distclean

help: ## list these targets
	@echo "make TARGET [PYTHON=python3.12] [ARGS='-k name']"
	@grep -hE '^[a-z.]+:.*## ' Makefile | sed -E 's/^([a-z.]+):.*## /\1\t/' \
		| while IFS=$$'\t' read -r name text; do printf '  %-10s %s\n' "$$name" "$$text"; done

demo: $(READY)-gpu ## compile and run the headline layer on every target of this machine
	@.ci/setup.sh vulkan $(PY) optional
	$(PY) -m convdsl.demo

test: $(READY)-test ## run all tests, the software Vulkan driver installed where root allows
	@.ci/setup.sh vulkan $(PY) required
	CONVDSL_REQUIRE_ADAPTER=1 $(PYTEST) $(PARALLEL) $(ARGS)

browser: $(READY)-test ## run the tests of the JavaScript loader in Chromium, installed where root allows
	@.ci/setup.sh browser
	$(PYTEST) -m browser tests/docs $(ARGS)

nightly: $(READY)-test ## run all tests with many more generated examples
	@.ci/setup.sh vulkan $(PY) required
	CONVDSL_REQUIRE_ADAPTER=1 CONVDSL_PROFILE=nightly $(PYTEST) $(PARALLEL) $(ARGS)

check: lint types quick ## lint, types and quick tests, before every commit; needs no adapter

lint: $(READY)-dev ## ruff: rules and layout
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(READY)-dev ## mypy, strict
	$(PY) -m mypy

quick: $(READY)-test ## the tests that are neither slow nor need an adapter, few examples
	CONVDSL_PROFILE=quick $(PYTEST) $(PARALLEL) -m "not slow and not gpu and not browser" $(ARGS)

fmt: $(READY)-dev ## let ruff fix and lay out the code
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

golden: $(READY)-test ## rewrite the golden files from what the code does now; then read the diff
	$(PYTEST) --update-golden $(ARGS)

coverage: $(READY)-dev ## branches and lines that no test reaches
	@mkdir -p build
	$(PY) -m coverage run -m pytest -q -m "not slow and not browser" $(ARGS)
	$(PY) -m coverage report

vulkan: $(READY)-gpu ## find a Vulkan adapter, or install the software driver
	@.ci/setup.sh vulkan $(PY) required

.venv: $(READY)-dev ## the environment for all of the above

clean: ## remove what builds and tool runs left behind, but for .venv
	rm -rf build dist *.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

distclean: clean ## and .venv too
	rm -rf $(VENV)

$(PY):
	@.ci/setup.sh venv "$(PYTHON)" $(VENV)

# dev holds test, test holds gpu: the larger set makes the smaller ones ready too.
$(READY)-gpu $(READY)-test $(READY)-dev: $(READY)-%: pyproject.toml | $(PY)
	@$(VENV)/bin/pip --version 2>/dev/null | grep -qF " from $(CURDIR)/" \
		|| .ci/setup.sh venv "$(PYTHON)" $(VENV)    # without pip, or moved here
	@echo "installing convdsl[$*] into $(VENV)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@case $* in \
		gpu) touch $(READY)-gpu;; \
		test) touch $(READY)-gpu $(READY)-test;; \
		dev) touch $(READY)-gpu $(READY)-test $(READY)-dev;; \
	esac
