# Every target does its own set-up: a virtual environment in .venv, made once per pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHECK_PYTHON := import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, \
this is %d.%d; choose another: make PYTHON=python3.12" % sys.version_info[:2])

.PHONY: test fuzz demo bench bench-quick test-mlir lint clean

test: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -n 2 -q

test-mlir: $(VENV)/dev.stamp $(VENV)/mlir.stamp
	$(BIN)/python -m pytest -q tests/mlir

demo: $(VENV)/demo.stamp
	$(BIN)/python -m jitdialects.runtime.pack
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/mlp_demo.py

# Benchmarks: no variable of the environment may choose slower kernels for NumPy's BLAS.
BENCH := env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE

# Everything, with every peer, in an environment of their own (4.7 GB, where pip finds a PyTorch for CPUs);
# writes docs/benchmarks.md in about 45 minutes. A run that was stopped goes on where it was.
bench:
	$(MAKE) VENV=.venv-bench .venv-bench/bench.stamp .venv-bench/mindspore.stamp
	.venv-bench/bin/python -m jitdialects.runtime.pack
	$(BENCH) .venv-bench/bin/python -m benchmarks --full

# Most rows in short form against NumPy, to stdout: under three minutes.
bench-quick: $(VENV)/dev.stamp
	$(BIN)/python -m jitdialects.runtime.pack
	$(BENCH) $(BIN)/python -m benchmarks --quick

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/pyright

$(VENV)/pip.stamp: pyproject.toml
	@test -x $(BIN)/pip || $(PYTHON) -c '$(CHECK_PYTHON)'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --upgrade pip
	touch $@

$(VENV)/%.stamp: $(VENV)/pip.stamp
	$(BIN)/pip install -qq -e '.[$*]'
	touch $@

# Of its own, since it is built for NumPy 1, and not there for every Python: the tables do without it.
$(VENV)/mindspore.stamp: $(VENV)/bench.stamp
	-$(PYTHON) -m venv $(VENV)/mindspore && $(VENV)/mindspore/bin/pip install -qq mindspore 'numpy<2'
	touch $@

.SECONDARY: $(VENV)/pip.stamp

# Threads call everything while the runtime is disturbed at random; SECONDS and SEED choose how long and how.
SECONDS ?= 60
SEED ?= 0
fuzz: $(VENV)/dev.stamp
	$(BIN)/python -X faulthandler tests/fuzz/stress_runtime.py --seconds $(SECONDS) --seed $(SEED)

clean:
	rm -rf $(VENV) build dist *.egg-info
