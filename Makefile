# Every target sets up what it needs: a virtual environment in .venv, renewed when setup.cfg changes.

PYTHON ?= python3
WORKERS ?= 2
N ?= 500
SEED ?= 0
TIER ?= compiled
OUT ?= out
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help demo test asan gpu gpu-tests lint fuzz mutants bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         fused and unfused kernels: a table, $(OUT)/demo.png and .json"
	@echo "make test         run the test suite"
	@echo "make asan         tests of the extension under AddressSanitizer"
	@echo "make gpu          on a machine with a GPU: tests, sanitizer, timings;"
	@echo "                    WHEELS=folder GPU=options"
	@echo "make gpu-tests    test GPU kernels without a GPU: compilers and a stand-in"
	@echo "make lint         run ruff and mypy"
	@echo "make fuzz N=500   try N random programs (SEED=0, TIER=compiled, inexact,"
	@echo "                    device, interpret)"
	@echo "make mutants      break the law of fusion in many ways: tests must notice"
	@echo "make bench        measure at length, large sizes: $(OUT)/bench.png, .json"
	@echo "make clean        remove .venv and $(OUT)"

$(INSTALLED): setup.cfg setup.py pyproject.toml $(wildcard pyfuser/hot/* pyfuser/hot_numpy/*)
	@echo "Setting up .venv (once; about a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,plot,dev]'
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/pyfuser compare kernels/*.py --repeat 6 --check-size small \
	    --plot $(OUT)/demo.png --json $(OUT)/demo.json

test: $(INSTALLED)
	@$(BIN)/python -m pytest --quiet -n $(WORKERS) --dist worksteal tests

# In a copy, so that the extension of this checkout stays as it is. Python has an allocator of its own,
# under which the sanitizer sees little, and keeps much until it ends, which is no leak.
# Tests ask for memory that no machine has, which is an error and no crash.
ASAN := $(OUT)/asan
ASAN_TESTS := tests/test_capture.py tests/test_capture_random.py tests/test_replay.py \
    tests/test_replay_random.py tests/test_team_turns.py tests/test_lone_calls.py tests/trace \
    $(addprefix tests/frontends/embedded/test_, dispatch.py views.py exports.py policies.py) \
    $(addprefix tests/frontends/numpy/test_, few.py known.py at_once.py sums.py lost.py)
ASAN_BUILT := import pyfuser; assert pyfuser.stats().compiled
asan: $(INSTALLED)
	@rm -rf $(ASAN) && mkdir -p $(ASAN)
	@cp -r pyfuser tests setup.py setup.cfg pyproject.toml README.md $(ASAN)
	@cd $(ASAN) && CFLAGS="-fsanitize=address -g -O1" \
	    $(abspath $(BIN))/python setup.py --quiet build_ext --inplace --force
	@cd $(ASAN) && LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" PYTHONMALLOC=malloc PYTHONPATH=. \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 sh -c '$(abspath $(BIN))/python -c "$(ASAN_BUILT)" && \
	    $(abspath $(BIN))/python -m pytest --quiet -p no:cacheprovider $(ASAN_TESTS)'

gpu-tests: $(INSTALLED)
	@$(BIN)/python -m pytest --quiet -rs -n $(WORKERS) --dist worksteal tests/gpu

# Without .venv, which needs the network: PYTHON has CuPy, and WHEELS what else it lacks.
gpu:
	@$(PYTHON) experiments/on_gpu.py $(if $(WHEELS),--wheels $(WHEELS)) $(GPU)

lint: $(INSTALLED)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary

fuzz: $(INSTALLED)
	@$(BIN)/python -m tests.fuzz --programs $(N) --seed $(SEED) --tier $(TIER)

mutants: $(INSTALLED)
	@$(BIN)/python -m tests.mutants

bench: $(INSTALLED)
	@$(BIN)/python experiments/chain_vs_handwritten.py --json $(OUT)/chain.json
	@$(BIN)/pyfuser compare kernels/*.py --size large --repeat 15 --check-size small \
	    --plot $(OUT)/bench.png --json $(OUT)/bench.json

clean:
	rm -rf .venv $(OUT) build *.egg-info
