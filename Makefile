# Thin names for the commands of README.md; the logic is in kernel-builder.
#
#   make build-matrix KERNELS=rmsnorm MATRIX=full OPTIONS="--torch 2.13,2.15"

PYTHON     ?= python3
GPU_PYTHON ?= python3
VENV       ?= .venv
KERNELS    ?=
MATRIX     ?= cover
OPTIONS    ?=
TORCHES    ?= 2.7.1 2.9.1 2.14.1

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --log $(VENV)/pip.log install
BUILDER := $(BIN)/kernel-builder
# Adds up "Downloading name.whl (1.2 MB)" of pip's log, which holds what came from an index and not from pip's cache.
PIP_BYTES := awk '/Downloading / && match($$0, /\([0-9.]+ (bytes|kB|MB|GB)\)/) { \
	split(substr($$0, RSTART + 1, RLENGTH - 2), a, " "); \
	n += a[1] * (a[2] == "GB" ? 1e9 : a[2] == "MB" ? 1e6 : a[2] == "kB" ? 1e3 : 1) } \
	END { printf "pip downloaded %.1f MB of Python packages\n", n / 1e6 }'

.PHONY: help build-matrix test test-gpu test-torches lint clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build-matrix: $(VENV)/.build  ## Build, check, package and stage the matrix into dist/hub
	@$(BUILDER) build $(KERNELS) --matrix $(MATRIX) $(OPTIONS) --out dist --stage dist/hub
	@[ ! -f $(VENV)/pip.log ] || { $(PIP_BYTES) $(VENV)/pip.log; rm $(VENV)/pip.log; }

test: $(VENV)/.test build-matrix  ## Run all tests on the CPU, those of the kernels through their packaged variants
	$(BIN)/python -m pytest tests
	$(BUILDER) test $(KERNELS) --device cpu

test-gpu:  ## Run the kernels' tests on this machine's GPU, with GPU_PYTHON's torch
	PYTHONPATH=builder $(GPU_PYTHON) -m kernel_builder test $(KERNELS) --device cuda --across-cuda

test-torches: build-matrix  ## Run the kernels' CPU tests in each of TORCHES (6 GB for a while each), look up every import
	$(BIN)/python ci/torches.py run $(TORCHES)
	$(BIN)/python ci/torches.py resolve

lint: $(VENV)/.lint  ## Style, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python ci/documents.py --check

clean:  ## Remove dist and caches; the store of toolkits stays
	rm -rf dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# Stamps: a second run asks pip nothing. Groups (PEP 735) need pip 25.1, which is newer than some Pythons bring.
$(VENV)/.build: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --quiet --upgrade 'pip>=25.1'
	$(PIP) --quiet --editable '.[build]'
	@touch $@

$(VENV)/.test: $(VENV)/.build
	$(PIP) --quiet --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.build
	$(PIP) --quiet --group lint
	@touch $@
