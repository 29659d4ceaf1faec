# Two commands to know: `make start` and `make test`. Both set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV_VERSION := 0.13.8
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help start test test-faults bench screenshots lock clean report report-screenshots mutants

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' \
	  | while IFS='|' read -r name text; do printf '  make %-18s %s\n' "$$name" "$$text"; done

start: $(VENV)/.runtime ## run the bus: web, worker and, if you have none, a Redis
	@$(BIN)/python -m routemaster.start || { code=$$?; [ $$code -eq 130 ] || exit $$code; } # Ctrl-C

test: $(VENV)/.dev ## lint, check types, run every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not faults" $(PYTEST_ARGS)

test-faults: $(VENV)/.dev ## the long tests: faults of every kind, a Spark cluster, whole pages
	$(BIN)/pytest -m faults -rP $(PYTEST_ARGS)

mutants: $(VENV)/.dev ## put bugs into a copy, one at a time, and see that the tests notice
	$(BIN)/python -m tests.faults.mutants

report: $(VENV)/.dev ## make the reports, of the export or of demo data: var/report.html
	@$(BIN)/python -m spark_jobs.make_report

report-screenshots: $(VENV)/.dev ## pictures of the reports for the README, of demo data
	@$(BIN)/python -m tests.spark_jobs.screenshots

bench: $(VENV)/.dev ## measure everything that should be fast, each beside a baseline
	$(BIN)/python -m bench.publish
	$(BIN)/python -m bench.client
	$(BIN)/python -m bench.delivery
	$(BIN)/python -m bench.reports
	$(BIN)/python -m bench.export

screenshots: $(VENV)/.dev ## pictures of the dashboard for the README, of a bus with demo traffic
	$(BIN)/python -m tests.dashboard.screenshots

# The stamps are what make compares: a second `make start` runs no pip at all.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "Routemaster needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is" \
	    "$$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu:" \
	    "apt install python3-venv" >&2; exit 1; }

$(VENV)/.runtime: requirements.txt pyproject.toml | $(BIN)/python
	@echo "Installing what the bus needs into $(VENV) (once)"
	@$(PIP) install --require-hashes -r requirements.txt
	@$(PIP) install --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	@echo "Installing what the tests need into $(VENV) (once)"
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/uv-$(UV_VERSION): | $(BIN)/python
	@$(BIN)/python -m venv $@
	@$@/bin/python -m pip --disable-pip-version-check --quiet install uv==$(UV_VERSION)

# The dev lock is made on top of the runtime lock, so that the tests run what production runs.
COMPILE = $(VENV)/uv-$(UV_VERSION)/bin/uv pip compile pyproject.toml --quiet --universal \
  --generate-hashes --python-version 3.11 --custom-compile-command "make lock"

lock: $(VENV)/uv-$(UV_VERSION) ## pin again what pyproject.toml asks for
	$(COMPILE) --extra export --extra sentry --output-file requirements.txt
	$(COMPILE) --extra dev --constraint requirements.txt --output-file requirements-dev.txt

clean: ## remove the virtual environment and the caches; your data in var/ stays
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
