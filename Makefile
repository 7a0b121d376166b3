# Everything a developer or an operator of this folder calls. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_ENV := DJANGO_SETTINGS_MODULE=tests.settings
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.run: requirements.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements.txt requirements-dev.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@ $(VENV)/.run

.PHONY: setup
setup: $(VENV)/.dev ## make .venv with the development requirements

.PHONY: run
run: $(VENV)/.run ## serve the site, a runner and a local agent with a demo; Ctrl-C stops all
	@exec $(BIN)/python -m kanade.local

.PHONY: agent
agent: $(VENV)/.run ## build dist/kanade-agent.pyz, the agent as one file
	@$(TEST_ENV) $(BIN)/python manage.py buildagent

.PHONY: format
format: $(VENV)/.dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lint
lint: $(VENV)/.dev ## format check, lint, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

.PHONY: types
types: $(VENV)/.dev ## strict types
	$(BIN)/mypy .

.PHONY: check
check: lint types ## lint, types, contracts, deployment check, migrations (at most 3 minutes)
	$(TEST_ENV) $(BIN)/python manage.py makemigrations --check --dry-run
	env -u KANADE_LOCAL -u DEBUG KANADE_ENV_FILE= ALLOWED_HOSTS=kanade.example.org KANADE_BASE_URL=https://kanade.example.org \
	    SECRET_KEY="$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(64))')" \
	    KANADE_TOKEN_PEPPER="$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(64))')" \
	    DATABASE_URL=sqlite:///:memory: \
	    $(BIN)/python manage.py check --deploy --fail-level WARNING

.PHONY: test
test: $(VENV)/.dev ## the whole suite on SQLite, and on PostgreSQL where one answers (at most 10 minutes)
	@$(BIN)/python -m tests.whole

.PHONY: test-fast
test-fast: $(VENV)/.dev ## SQLite alone, without real threads, processes and browsers
	$(BIN)/pytest -q -m "not concurrency and not browser and not prove"

.PHONY: prove
prove: $(VENV)/.dev ## the full settings of kills, model steps and fuzz (at most 80 minutes)
	@$(BIN)/python -m tests.whole --prove
