# The front door. `make help` lists every command.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
RUNNABLE := .venv/.runnable
COMPILER := .venv/.compiler
COMPILED := .venv/.compiled
COMMON := .venv/.compiled-common
CLASSES := .venv/spark-classes.jsa
PEERS := .venv-bench/.installed
PAGES := $(wildcard README.md docs)
PYTEST := $(BIN)/python -m pytest

# Some machines tell Python to keep no byte code. Then each of the hundreds of processes that tests start compiles all
# modules that it imports, which takes longer than the rest of its start.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup cargo java postgres mariadb chromium connectors dbt run test fast check bench bench-native docs site conformance torture mutants

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What does not need each other is done at the same time: above all, kernels are compiled on one core while the
# other one installs the rest.
setup: $(BIN)/pip java  ## make .venv from the lock, compile the kernels, see to Java, PostgreSQL, MariaDB, Chromium, Kafka, HDFS, Delta Lake, Iceberg and dbt
	@$(MAKE) --no-print-directory --jobs $(COMPILED) $(INSTALLED) $(CLASSES) postgres mariadb chromium connectors dbt

run: $(COMMON) java  ## the demo: a payments company on local Spark, in about a minute
	$(BIN)/python -m everview demo

test: setup  ## every check, test, doctest and example
	@scripts/test.sh

fast: $(INSTALLED) $(COMPILED) postgres chromium  ## a core of tests and those of changed packages, in under a minute
	@$(BIN)/python scripts/fast.py

check: $(INSTALLED)  ## format, lint, types, layers
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo

conformance: setup  ## SQL conformance in full: more splits into ticks, and all of it on Spark
	EVERVIEW_CONFORMANCE=1 $(PYTEST) -q tests/conformance

# SECONDS=300 for all together, PARTS=random_sql,forks for some, SEED=7 for the same again.
torture: setup  ## half an hour of interrupts, kills, forks, full disks, hostile texts and random SQL
	PYTHONPATH=src:tests $(BIN)/python -m torture $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PARTS),--parts $(PARTS)) $(if $(SEED),--seed $(SEED))

mutants: $(INSTALLED) $(COMPILED)  ## plant faults in the code, one at a time, and see that the tests notice each
	PYTHONPATH=src:tests $(BIN)/python -m mutants

bench: setup $(PEERS)  ## the benchmarks, ours and the peers'
	$(BIN)/python benchmarks/run.py

# QUICK=1 for a small scale. Cargo reads the settings of the folder that it runs in.
bench-native: cargo $(INSTALLED) $(COMPILED)  ## the benchmarks beside differential-dataflow and dbsp, which cargo builds in some minutes
	cd benchmarks/native && cargo build --release --locked
	$(BIN)/python benchmarks/run.py --only native $(if $(QUICK),--quick)

docs: $(INSTALLED) $(COMPILED)  ## run the examples in README.md and docs
ifeq ($(PAGES),)
	@echo "No pages yet."
else
	@# Pages without examples collect nothing, which pytest reports as 5.
	$(PYTEST) -q --doctest-glob='*.md' $(PAGES) || test $$? -eq 5
endif

site: $(INSTALLED)  ## the documentation as a site, in build/site, with every link looked up
	@$(BIN)/python scripts/docs_site.py

cargo:
	@command -v cargo >/dev/null || { echo "error: make bench-native builds its peers with cargo, Rust's build tool, and there is none: see https://rustup.rs"; exit 1; }

java:
	@scripts/java.sh

postgres:
	@scripts/postgres.sh

mariadb:
	@scripts/mariadb.sh

chromium:
	@scripts/chromium.sh

connectors: $(INSTALLED) java
	@scripts/connectors.sh

dbt: | $(COMPILER)
	@scripts/dbt.sh

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Everview needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv --clear .venv

$(COMPILER): requirements.lock scripts/install.sh scripts/packages.sh | $(BIN)/pip
	@scripts/install.sh .venv compiler
	@touch $@

$(INSTALLED): requirements.lock pyproject.toml scripts/install.sh scripts/packages.sh $(COMPILER) | $(BIN)/pip
	@echo "Installing what the lock pins, some 130 packages."
	scripts/install.sh .venv
	@touch $@ $(RUNNABLE)

$(RUNNABLE): requirements.lock pyproject.toml scripts/install.sh scripts/packages.sh scripts/demo_packages.txt | $(BIN)/pip
	@echo "Installing what the demo needs; most of it is Spark, of 450 MB."
	scripts/install.sh .venv demo
	@touch $@

# Once now, or once a process later: Numba keeps the machine code beside the sources.
$(COMPILED): $(COMPILER) $(wildcard src/everview/kernels/*.py)
	@echo "Compiling the kernels: a minute or two, once."
	@PYTHONPATH=src $(BIN)/python -m everview.kernels
	@touch $@ $(COMMON)

# Once now, or once a Java machine later: tests start dozens of them.
$(CLASSES): $(INSTALLED) scripts/spark_classes.py | java
	@echo "Archiving the classes of Spark that tests load, once."
	@$(BIN)/python scripts/spark_classes.py $@ 2>$@.log || { cat $@.log >&2; exit 1; }

# The demo needs a third of the kernels, and whoever runs it first has waited long enough.
$(COMMON): $(RUNNABLE) $(wildcard src/everview/kernels/*.py)
	@echo "Compiling the kernels that the demo uses, once."
	@$(BIN)/python -m everview.kernels common
	@touch $@

$(PEERS): benchmarks/requirements.lock
	test -x .venv-bench/bin/pip || $(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@
