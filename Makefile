# Everything from a fresh Debian or Ubuntu. Each target prepares what it needs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

BIN := .venv/bin
PIP := $(BIN)/python -m pip --no-input --disable-pip-version-check
MODELS := minilm smollm2 multilingual
CODE := actors benchmarks examples memory_graph models runtime tests

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: demo
demo: models ## install, fetch the models and run the demonstration
	@$(BIN)/reverie demo

.PHONY: test
test: lint models ## lint, types and every test
	@echo '==> tests'
	@$(BIN)/python -m pytest -n 2

.PHONY: torture
torture: .venv/dev.stamp ## the long forms of the crash suites (hours), and their table in docs/reliability.md
	@$(BIN)/python tests/crash/torture.py

.PHONY: lint
lint: .venv/dev.stamp ## style and types
	@echo '==> ruff'
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo '==> mypy'
	@$(BIN)/python .ci/check_types.py

.PHONY: format
format: .venv/dev.stamp ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: install
install: .venv/install.stamp ## make .venv and install reverie into it

.PHONY: models
models: .venv/install.stamp ## fetch the models that the demonstration and the tests use
	@echo '==> models: $(MODELS)'
	@$(BIN)/reverie models pull $(MODELS)

.PHONY: clean
clean: ## remove .venv and what builds and tools leave; models stay
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(CODE) .ci -name __pycache__ -prune -exec rm -r {} +

.venv/install.stamp: pyproject.toml .ci/llama.py
	@python=$$(.ci/setup); [ -x $(BIN)/python ] || $$python -m venv --clear .venv
	@echo "==> .venv with $$($(BIN)/python --version)"
	@$(BIN)/python .ci/llama.py
	@echo '==> installing reverie and its libraries'
	@$(PIP) install --quiet --editable .
	@touch $@

.venv/dev.stamp: .venv/install.stamp
	@.ci/setup browser >/dev/null
	@echo '==> installing the tools for tests'
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@
