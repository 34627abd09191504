# make demo: train, measure, export and use a translator.   make test: every test, every backend.
# make test-jax (tensorflow, torch): the tests under one backend.
# make install-test: wheel and sdist, in empty environments with one backend alone: three minutes.
# make docs: the documentation, into site/.   make lint: style and import rules.
# make bench: every benchmark in its short form, toy sizes beside the peers, about five minutes.
# All need only Python 3.11 or newer and make; they make the environment in .venv if it is missing.

PYTHON ?= python3
BIN := .venv/bin
RUN := saved_models/grammar$(addprefix -,$(KERAS_BACKEND))
BACKENDS := tensorflow jax torch
# A process a core, a file of tests to each: most tests wait for one compilation or another.
PYTEST := --quiet --durations 12 --numprocesses auto --maxprocesses 8 --dist loadfile \
	--no-loadscope-reorder

.PHONY: demo test $(addprefix test-,$(BACKENDS)) install-test bench lint docs format clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	# PyTorch first and alone: so that its CPU build is taken wherever one is offered. What is never
	# imported need not be compiled.
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[all,dev]"
	touch $@

demo: .venv/ready
	$(BIN)/python -m training.translation --recipe grammar --output $(RUN)
	$(BIN)/python -m training.demo $(RUN)

test: .venv/ready lint docs
	@for backend in $(BACKENDS); do $(MAKE) --no-print-directory test-$$backend || exit 1; done

$(addprefix test-,$(BACKENDS)): .venv/ready
	@echo "== tests under $(@:test-%=%)"
	@KERAS_BACKEND=$(@:test-%=%) OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST)

install-test: .venv/ready
	$(BIN)/python tests/install.py

.venv/bench: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,bench]"
	touch $@

bench: .venv/bench
	$(BIN)/python -m benchmarks.train --size toy --rows 16 --rounds 2 \
		--only $(addprefix ours-,$(BACKENDS)) marian torch.nn
	$(BIN)/python -m benchmarks.decode --short
	$(BIN)/python -m benchmarks.data --batches 50
	$(BIN)/python -m benchmarks.memory --short
	$(BIN)/python -m benchmarks.scaling --short

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile

# Warnings fail; the notice of the theme's end of life would drown them.
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv site saved_models/grammar $(addprefix saved_models/grammar-,$(BACKENDS))
