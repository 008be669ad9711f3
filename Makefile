# Every target does its own set-up: a virtual environment in .venv, made once per pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHECK_PYTHON := import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, \
this is %d.%d; choose another: make PYTHON=python3.12" % sys.version_info[:2])

.PHONY: test demo test-mlir lint clean

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

.SECONDARY: $(VENV)/pip.stamp

clean:
	rm -rf $(VENV) build dist *.egg-info
