# Penstock: `make` shows what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Compiled modules are kept: they are a third of the time a broker takes to start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup java demo test check bench simulate simulate-clients format clean chaos bare

help:  ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Make .venv with the penstock command in it

$(STAMP): pyproject.toml constraints.txt scripts/python-setup
	@scripts/python-setup "$(PYTHON)" "$(VENV)"
	@touch $@

java: $(STAMP)  # Java, Maven, Apache Kafka's jars and those of Spark's Kafka connector: for the tests and the bench only
	@scripts/java-setup
	@$(BIN)/python -m penstock.spark.connector

demo: $(STAMP)  ## A broker, topics and a Spark pipeline at work (KEEP=1 leaves the broker up to look around)
	@scripts/java-setup --runtime-only
	@$(BIN)/python -m examples.demo $(if $(KEEP),--keep)

test: $(STAMP) java  ## Run all tests, with real clients and Apache Kafka's own tools
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest -q --numprocesses 2 --dist loadfile --no-loadscope-reorder $(ARGS)  # else long files with few tests come last, alone

check: $(STAMP)  ## Format, lint, types, layers, generated files, unit tests: under a minute
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest -q --numprocesses 2 tests/unit

.PHONY: lint
lint: $(STAMP)
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/generate_messages.py --check
	@$(BIN)/python scripts/generate_reference.py --check
	@$(BIN)/python scripts/generate_command_reference.py --check

format: $(STAMP)  ## Format the code and fix what can be fixed
	@$(BIN)/ruff check -q --fix . ; $(BIN)/ruff format -q .

bench: $(STAMP) java  ## Measure beside Apache Kafka, write bench/RESULTS.md (ARGS=--quick: three minutes)
	@$(BIN)/python -m bench $(ARGS)

chaos: $(STAMP)  ## Kill, pause and restart three brokers and ZooKeeper for ten minutes under load, then check every record
	@scripts/java-setup --runtime-only
	@$(BIN)/python -m penstock.testing.chaos $(ARGS)

simulate: $(STAMP)  ## Simulate whole clusters with faults, one for each of SEEDS (1000) seeds from FIRST (1) on
	@$(BIN)/python -m penstock.testing.simulation --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1) $(ARGS)

simulate-clients: $(STAMP)  ## Run our clients against a broker that lies, one scenario for each of SEEDS (200) seeds from FIRST (1) on
	@$(BIN)/python -m penstock.testing.liar --seeds $(or $(SEEDS),200) --first $(or $(FIRST),1) $(ARGS)

bare:  ## make demo and make test on a bare Debian, made with debootstrap for it (as root; an hour)
	@scripts/bare-debian $(ARGS)

clean:  ## Remove what set-up and tests made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build
