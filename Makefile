# make demo    watch the guard at work
# make test    everything that has to pass: linters, types, imports, tests
# PYTHON=...   another interpreter, for example: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data/eval/ragtruth_test.jsonl.gz
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench clean

help:
	@echo "make demo    create $(VENV), install the package, run the demonstration"
	@echo "make test    create $(VENV), install with the development tools, run linters and tests"
	@echo "make lint    the linters only"
	@echo "make bench   replay recorded answers through the guard (DATA=FILE, LIMIT=N)"
	@echo "make clean   remove $(VENV), builds and caches"

demo: $(VENV)/.installed
	@$(BIN)/guardrail demo

test: lint
	$(BIN)/pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	@test -r "$(DATA)" || { echo "make bench: there is no $(DATA); name a file: make bench DATA=FILE" >&2; exit 1; }
	$(BIN)/guardrail bench replay "$(DATA)" $(if $(LIMIT),--limit $(LIMIT))

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "guardrail needs Python 3.11 or newer, and '$(PYTHON)' is not that; name one: make PYTHON=python3.12" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml
	@echo "installing the development tools; the first time takes some minutes"
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.installed
