# make demo          train, measure, export and use a translator
# make check         lint and the fast tests on PyTorch; two minutes
# make test          lint, documentation, and the tests under PyTorch, JAX and TensorFlow;
#                    KT_EVERY_CASE=1 make test runs all cases of each test
# make test-jax      the tests under one backend (also test-tensorflow, test-torch)
# make published     install packages with published weights (tests/published.txt, 310 MB); their tests
#                    are skipped without them
# make faults        all faults of tests/faults (kills, full disks, truncated files, flipped bits),
#                    with their counts; make test runs a sample of them
# make fuzz          10,000 damaged examples for each reader of foreign files, and as many requests
#                    to the server; KT_FUZZ=500 make fuzz is shorter
# make marian        compare with Marian itself on PyTorch; installs it (0.6 GB, x86, Linux)
# make install-test  install wheel and sdist in empty environments with one backend; three minutes
# make release       write wheel, sdist, the translator's wheel and software bill of materials to
#                    dist/; list the known vulnerabilities of the tested versions, from PyPI
# make docs          build the documentation into site/; with the page of `make page`, if it is there
# make page          export tatoeba to a page that translates in the browser, build/page
# make lint          check style and import rules
# make size          lines of code per package, words of the documentation, the longest file and
#                    function
# make bench         the benchmarks train, decode, data, memory and scaling with toy sizes; about
#                    five minutes. It shows that they run; at these sizes most of the time is
#                    overhead. The measured tables are in benchmarks/results/, with their commands.
# All targets need only make and Python 3.11 to 3.13, and create .venv if it is missing.

PYTHON ?= python3
BIN := .venv/bin
RUN := saved_models/grammar$(addprefix -,$(KERAS_BACKEND))
BACKENDS := tensorflow jax torch
# One process per core, and whole test files per process: most of the time goes to compilation.
PROCESSES ?= auto
# Half of the cores; 0 is the process of pytest itself: one more would import Keras once more.
HALF := $(shell $(PYTHON) -c "import os; print(os.cpu_count() // 2 if os.cpu_count() > 3 else 0)")
PYTEST = --quiet --durations 12 --numprocesses $(PROCESSES) --maxprocesses 8 --dist loadfile \
	--no-loadscope-reorder
# Folders whose tests take seconds, and the test files outside of folders.
FAST := $(wildcard tests/test_*.py) $(addprefix tests/,decoding demo distribution layers models \
	running text weights)

# Tests start many processes: with bytecode files, only the first one compiles a module.
export PYTHONDONTWRITEBYTECODE :=

PAGE := build/page

.PHONY: check size demo test $(addprefix test-,$(BACKENDS)) published faults fuzz marian install-test bench lint docs page format clean release

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	# PyTorch first and alone, so that pip takes its CPU build where an index offers one.
	# --no-compile saves time: most modules are never imported.
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[all,dev]"
	touch $@

demo: .venv/ready
	$(BIN)/python -m training.translation --recipe grammar --output $(RUN)
	$(BIN)/python -m training.demo $(RUN)

check: lint
	@KERAS_BACKEND=torch OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST) $(FAST)

# Two at a time, in this order: PyTorch's tests, which read the site, begin when those of one other
# backend end, so that no core waits for the slower one.
test: .venv/ready
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target KT_SITE=$(CURDIR)/site SHARE=$(HALF) \
		lint docs test-tensorflow test-jax test-torch

test-tensorflow test-jax: PROCESSES := $(or $(SHARE),$(PROCESSES))
$(addprefix test-,$(BACKENDS)): .venv/ready
	@echo "== tests under $(@:test-%=%)"
	@KERAS_BACKEND=$(@:test-%=%) OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST)

.venv/published: .venv/ready tests/published.txt
	$(BIN)/python -m pip install --quiet --no-compile --no-deps --requirement tests/published.txt
	touch $@

published: .venv/published

# One process: each process counts only its own faults.
faults: .venv/ready
	@KT_FAULTS=all KERAS_BACKEND=torch OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet tests/faults

fuzz: .venv/ready
	@KT_FUZZ=$${KT_FUZZ:-10000} KERAS_BACKEND=torch OMP_NUM_THREADS=1 \
		$(BIN)/python -m pytest $(PYTEST) tests/fuzz tests/serving/test_fuzz.py

.venv/marian: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[marian]"
	touch $@

marian: .venv/marian
	@KERAS_BACKEND=torch OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST) tests/hub/marian \
		tests/export/test_marian.py tests/docs/test_marian_commands.py \
		tests/benchmarks/test_marian_program.py

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

release: install-test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,dev,release]"
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m build --wheel --outdir dist saved_models/tatoeba
	$(BIN)/cyclonedx-py requirements constraints.txt --pyproject pyproject.toml \
		--output-reproducible --output-format JSON --output-file dist/sbom.json
	$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

size:
	@$(PYTHON) -m tests.size

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile

# Warnings fail the build; with `--quiet` they would not, as MkDocs then does not count them. The
# variable turns off the theme's long notice about MkDocs 2, in which warnings would be overlooked.
docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

page: .venv/ready
	rm -rf $(PAGE)
	$(BIN)/keras-transformer export saved_models/tatoeba $(PAGE) --format web

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv site saved_models/grammar $(addprefix saved_models/grammar-,$(BACKENDS))
