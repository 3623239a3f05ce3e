# Every target sets up what it needs: a machine with Python 3.11 and make is enough.
PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m
INTO := $(BIN)/uv pip install --quiet --python $(BIN)/python
# More than there are cores: many tests wait for processes that they started.
PARALLEL ?= -n 6 --dist worksteal
# Bytecode is kept whatever the caller's environment says: without it every process that a test
# starts compiles all that it imports, and every process of the run rewrites every assert again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test collected check lint types floors words tools ui screenshots unit bench bench-ui bench-distributed bench-peers chaos faults soak growth chance fuzz audit sbom size docs site format lock clean simulate simulate-reach model mutants

help: ## show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: .venv/ready ## create .venv and install everything into it, pinned and hashed

# What running needs, and no more; a file whose hash differs from the lock's is refused.
.venv/core: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(RUN) pip install --quiet --disable-pip-version-check uv
	$(INTO) --compile-bytecode -c requirements.lock hatchling editables
	$(INTO) --compile-bytecode -c requirements.lock --no-build-isolation -e .
	touch $@

# Not compiled: most of it is never imported, and what is keeps its bytecode then.
.venv/ready: .venv/core
	$(INTO) --require-hashes -r requirements.lock
	touch $@

run: .venv/core ## run the first example
	$(BIN)/noetl run examples/01-hello/playbook.yaml

# Checking takes one core, and what must stand before the tests the other.
test: setup .venv/ui ## everything that CI runs
	$(MAKE) --jobs=2 --output-sync=target check collected
	$(RUN) pytest $(PARALLEL)

check: lint types floors ## what needs no running: style, types, floors

lint: setup ## ruff, as linter and as formatter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy, strict
	$(BIN)/mypy

floors: setup ## imports go down only; the thinking rooms stay pure
	$(BIN)/lint-imports

words: setup ## the house rules alone: sizes, words, docs against code
	$(RUN) pytest tests/house

tools: ## what some tests need of the system: podman, a static busybox, chromium
	sh tests/support/install.sh

# Node and the driver of the browser; nothing else needs them.
.venv/ui: .venv/core ui/requirements.lock
	$(INTO) --require-hashes -r ui/requirements.lock
	touch $@

ui: .venv/ui ## build the web UI into the package, and check its types
	$(BIN)/python ui/building.py
	$(BIN)/python ui/building.py check

screenshots: setup tools ui ## every page of the UI, light and dark, wide and narrow, in dist/screenshots; four of them for the docs
	$(RUN) tests.ui.pictures

# Once for all processes of the run, which would each do it: asserts are rewritten, constants found.
collected: setup tools ui
	@test -d tests/__pycache__ || $(RUN) pytest --collect-only >/dev/null || true

unit: setup tools ui ## all tests
	$(RUN) pytest $(PARALLEL)

bench: setup ## ours beside the reference, in one run
	$(RUN) bench

bench-distributed: setup ## servers and workers on PostgreSQL and NATS beside the raw limits and a peer
	$(RUN) bench distributed

bench-peers: setup ## ours beside other engines on the same work; PEERS='--peers dbos,burr --works W1,W2' chooses
	$(RUN) bench.peers --chart docs/pictures/peers.svg --pages docs/performance.md README.md $(PEERS)

bench-ui: setup tools ui ## the UI in Chromium: 10,000 iterations beside 100, and what 50 followers cost
	$(RUN) bench.ui

chaos: setup ## two servers and four workers, 2,000 executions, one process killed every second
	NOETL_CHAOS=2000 .venv/bin/python -m pytest -s tests/system/test_fleet_deaths.py

faults: setup tools ## every fault test at the default lease times and at its full size
	NOETL_FAULTS=full $(RUN) pytest -s tests/faults tests/system/test_fleet_faults.py tests/system/test_faults.py tests/system/test_kill_resume.py

MINUTES ?= 20
soak: setup ## random kills and pauses of servers, workers, PostgreSQL and NATS for MINUTES; counts what is lost, doubled, stuck
	$(RUN) tests.faults.soak --minutes $(MINUTES)

growth: setup ## 100,000 executions: memory, descriptors, tasks and rows stay as after 1,000
	NOETL_FAULTS=full $(RUN) pytest -s tests/faults/test_growth.py

SEEDS ?= 10000
simulate: setup ## SEEDS=N seeds of the simulated world, on all cores; FIRST=N begins there
	$(RUN) tests.simulation --seeds $(SEEDS) --first $(or $(FIRST),0)

simulate-reach: setup ## which except and which refusal of server and worker seeds reach; writes the list
	$(RUN) tests.simulation --seeds $(SEEDS) --processes 1 --reach

chance: setup ## the property tests with new seeds; what they find becomes an @example
	NOETL_PROPERTIES=chance $(RUN) pytest tests/property

PLAYBOOKS ?= 20000
model: setup ## the reference model beside the engine on random playbooks: PLAYBOOKS=20000
	$(RUN) tests.model --playbooks $(PLAYBOOKS)

mutants: setup ## plant each fault of tests/mutants alone; its tests must notice
	$(RUN) tests.mutants

fuzz: setup ## chance against the parser, the templates and the queue
	$(RUN) fuzz --runs 5000 --seed 1

audit: setup ## pins, hashes and known vulnerabilities of what is installed; AUDIT=strict: nobody to ask is a failure
	$(RUN) tests.house.audit

sbom: setup ## what the wheel brings with it, as CycloneDX, in dist/
	$(RUN) tests.house.sbom

size: setup ## what the core takes on disk, package by package
	$(RUN) tests.house.size

docs: setup ## write the generated pages again
	$(RUN) tests.conformance.matrix
	$(RUN) tests.house.reference

site: setup ## the pages as a site with search, in dist/site
	$(RUN) tests.house.site

format: setup ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup ## resolve again and write requirements.lock
	$(BIN)/uv export --quiet --python $(BIN)/python --no-emit-project --no-emit-index-url --no-annotate --no-header -o requirements.lock
	$(BIN)/uv export --quiet --python $(BIN)/python --only-group ui --no-emit-project --no-emit-index-url --no-annotate --no-header -o ui/requirements.lock

clean: ## forget the environment and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist ui/node_modules src/noetl/ui
