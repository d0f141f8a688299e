# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONPATH := $(CURDIR):$(CURDIR)/platform
export DJANGO_SETTINGS_MODULE := config.settings

lock_hash = $(shell cksum $(1) 2>/dev/null | cut -d' ' -f1)
RUN_STAMP := $(VENV)/.run-$(call lock_hash,requirements-box.lock)
DEV_STAMP := $(VENV)/.dev-$(call lock_hash,requirements-dev.lock)
NODES := tests/integration/api_clients/node tests/integration/typed_clients/node
NODE_STAMPS := $(foreach node,$(NODES),$(node)/node_modules/.installed-$(call lock_hash,$(node)/package-lock.json))

kafka_env = $(if $(filter tls,$(KAFKA)),PENSTOCK_KAFKA_TLS=true)$(if $(filter 3,$(KAFKA)),PENSTOCK_KAFKA_BROKERS=3)
ifeq ($(origin KAFKA),command line)
ifneq ($(words $(KAFKA))$(filter-out tls 3,$(KAFKA)),1)
$(error KAFKA: needs tls or 3, got $(KAFKA))
endif
endif

PACKAGES := manage.py platform/config platform/localbox platform/loadgen platform/penstock_cli platform/typed_clients penstock_client mgmt controlplane dataplane tests examples

.PHONY: help demo up down status archive backup restore secrets test test-secured test-long check lint types imports docs quick coverage reference client hooks bench lake-recompute wheel vulnerabilities chromium typescript php

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Penstock needs Python 3.11 or newer as $(PYTHON); set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "This Python cannot make virtual environments; install its venv package (Debian: python3-venv)" >&2; exit 1; }

# The development lock holds everything of the other one, so it serves for running, too.
$(RUN_STAMP): | $(BIN)/python
	@ls $(VENV)/.dev-* >/dev/null 2>&1 && [ -e $(DEV_STAMP) ] || { echo "installing the locked packages: once, some minutes, 1.4 GB on disk ..." >&2 && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-box.lock; }
	@touch $@

$(DEV_STAMP): | $(BIN)/python
	@echo "installing the locked packages, those for development too: once, some minutes ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(RUN_STAMP) ## all services, a demo pipe and traffic; ONCE=1 COUNT= RATE= EVENTS= BATCH= runs to the end and accounts for it; PIPE=full; KAFKA=tls or 3
	@$(kafka_env) $(BIN)/python -m localbox.demo

up: $(RUN_STAMP) ## start the box in the background
	@$(kafka_env) $(BIN)/python -m localbox up --detach

down: $(RUN_STAMP) ## stop the box, in whatever state it is
	@$(BIN)/python -m localbox down

status: $(RUN_STAMP) ## say what runs
	@$(BIN)/python -m localbox status

archive: $(RUN_STAMP) ## archive the classes of Spark and Kafka once, so that they start in half the time from then on
	@$(BIN)/python -m localbox archive

backup: $(RUN_STAMP) ## copy everything that the stopped box keeps to FILE=, a new file outside of var/
	@$(BIN)/python -m localbox backup "$(FILE)"

restore: $(RUN_STAMP) ## bring back the backup in FILE=, into an empty var/
	@$(BIN)/python -m localbox restore "$(FILE)"

secrets: $(RUN_STAMP) ## print fresh secrets as lines for .env, which the containers need
	@$(BIN)/python -m localbox secrets

check: lint types imports docs vulnerabilities quick ## lint, types, import rules, the documentation site, known vulnerabilities, unit and db tests

lint: $(DEV_STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

types: $(DEV_STAMP)
	@MYPYPATH=platform:. $(BIN)/mypy $(PACKAGES)

imports: $(DEV_STAMP)
	@$(BIN)/lint-imports

docs: $(DEV_STAMP) ## build the documentation site in var/docs-site; a broken link or heading is an error
	@$(BIN)/sphinx-build -j auto -q -W --keep-going -c docs -d var/docs-doctrees . var/docs-site

vulnerabilities: $(DEV_STAMP) ## ask the package index for known vulnerabilities of the locked packages; a warning without an answer
	@$(BIN)/python -m tests.vulnerability_scan $(if $(STRICT),--strict) requirements-box.lock

quick: $(DEV_STAMP)
	@$(BIN)/pytest tests/unit tests/db --numprocesses=2

coverage: $(DEV_STAMP) ## the unit and db tests with their coverage; fails under the gate
	@mkdir -p var/coverage
	@$(BIN)/pytest tests/unit tests/db --numprocesses=2 --cov --cov-report=json:var/coverage/report.json
	@$(BIN)/python -m tests.coverage_gate var/coverage/report.json

test: check chromium typescript php ## everything, on real services and in Chromium
	@$(BIN)/pytest tests/e2e tests/faults tests/integration --durations=20 --numprocesses=2 --dist=loadscope --no-loadscope-reorder

# Tests of ingest, lanes, control plane, readers of pages and Spark queries that start a broker.
SECURED := tests/integration/controlplane tests/integration/ingest tests/integration/jobs tests/integration/retrier \
	tests/integration/streams tests/integration/localbox/test_ingest_replica_scaling.py \
	$(addprefix tests/integration/test_,$(addsuffix .py,admission body_search comparison control_reader curl_commands \
	dead_rate documented_programs event_log generated_client lane_consumer live_tail lookup_replicator message_journey operational_events original_bodies page_readers reads_by_offset \
	rejected_events spread_keys table_changes table_queries traces)) \
	$(addprefix tests/faults/test_,$(addsuffix .py,broker bulk changes_in_flight clock_skew crash_points destination_requests \
	destination_responses destinations disk_full drain failing_destinations invalid_requests isolation kills lookups loss_meter order outage \
	pauses planted_bugs poison_message postgres_destination region_mirror scaling standby timing truncated_log whole_pipe zombie_lanes))
SECURED_LONG := $(addprefix tests/integration/jobs/test_,$(addsuffix .py,recompute replay shadow)) \
	$(addprefix tests/faults/test_,$(addsuffix .py,disk_full truncated_log))

test-secured: $(DEV_STAMP) ## tests of ingest, lanes, Observer and Spark queries on a Kafka with TLS, SCRAM and ACLs
	@PENSTOCK_KAFKA_TLS=true $(BIN)/pytest $(SECURED) --durations=10 --numprocesses=2 --dist=loadscope --no-loadscope-reorder
	@PENSTOCK_KAFKA_TLS=true $(BIN)/pytest $(SECURED_LONG) -m long --durations=10 --numprocesses=2 --dist=loadscope --no-loadscope-reorder

test-long: $(DEV_STAMP) chromium ## the long campaigns; their sizes are in CONTRIBUTING.md
	@$(BIN)/pytest tests -m "long and not alone" --durations=20 --numprocesses=2 --dist=loadscope --no-loadscope-reorder
	@$(BIN)/pytest tests -m "long and alone" --durations=10
	@$(MAKE) --no-print-directory test-secured

typescript: $(NODE_STAMPS)

$(NODE_STAMPS):
	@for tool in node npm go javac; do command -v $$tool >/dev/null \
		|| { echo "The tests of typed clients need $$tool on the PATH; CONTRIBUTING.md lists the versions" >&2; exit 1; }; done
	@echo "installing the TypeScript compiler of the lock ..." >&2
	@npm ci --prefix $(dir $(@D)) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

chromium: $(DEV_STAMP)
	@$(BIN)/python -m tests.support.chromium || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing Chromium ..."; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
		else echo "The browser tests need Chromium or Chrome; install it with your system's package manager" >&2; exit 1; fi; }

php:
	@command -v php >/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing PHP ..."; apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq php-cli >/dev/null; \
		else echo "The test of examples/verify_signatures needs PHP on the PATH; install it with your system's package manager" >&2; exit 1; fi; }

reference: $(RUN_STAMP) ## generate the pages of steps, expressions, metrics, the API and the command line from the code
	@$(BIN)/python -m dataplane.plan.reference > docs/reference/steps-and-expressions.md
	@$(BIN)/python -c 'from dataplane.metrics import page; print(page(), end="")' > docs/reference/metrics.md
	@$(BIN)/python -m mgmt.web.reference < docs/openapi.yaml > docs/reference/api.md
	@$(BIN)/python -m mgmt.audit.reference > docs/reference/audit-actions.md
	@$(BIN)/python -m mgmt.operational_events.reference > docs/reference/operational-events.md
	@$(BIN)/python -m penstock_cli.reference > docs/reference/cli.md
	@$(BIN)/python -m mgmt.web.errors_reference > docs/reference/errors.md
	@$(BIN)/python -m mgmt.pipes.presets_reference > docs/reference/destination-presets.md

DIST := dist
DIST_FILES := penstock-*.whl licenses.md sbom.cdx.json
wheel: $(DEV_STAMP) ## build DIST=dist: the wheel, its bill of materials (SBOM), the licenses of its packages, and checksums
	@mkdir -p "$(DIST)" && rm -f $(foreach file,$(DIST_FILES) SHA256SUMS,"$(DIST)"/$(file))
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$(DIST)" .
	@$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --short-PURLs --output-reproducible --of JSON \
		--output-file "$(DIST)/sbom.cdx.json" requirements-box.lock
	@$(BIN)/python -m tests.license_gate requirements-box.lock > "$(DIST)/licenses.md"
	@cd "$(DIST)" && sha256sum $(DIST_FILES) > SHA256SUMS && cat SHA256SUMS

# The generator needs another release of typer than the tests, so it has an environment of its own.
CLIENT := var/client
client: $(RUN_STAMP) ## generate penstock_client, the Python client of the whole API, from docs/openapi.yaml
	@mkdir -p $(CLIENT)
	@[ -x $(CLIENT)/venv/bin/openapi-python-client ] || { $(PYTHON) -m venv $(CLIENT)/venv && $(CLIENT)/venv/bin/pip \
		install --quiet --disable-pip-version-check openapi-python-client==0.29.1 ruff==0.17.5; }
	@$(BIN)/python -m penstock_cli.client_source < docs/openapi.yaml > $(CLIENT)/openapi.json
	@rm -rf penstock_client && $(CLIENT)/venv/bin/openapi-python-client generate --path $(CLIENT)/openapi.json --meta none \
		--fail-on-warning --output-path penstock_client --custom-template-path platform/penstock_cli/client_templates \
		--config platform/penstock_cli/client_templates/config.yaml
	@$(CLIENT)/venv/bin/ruff format --quiet --isolated --line-length 120 --target-version py311 penstock_client
	@$(BIN)/python -m penstock_cli.client_source --digest < docs/openapi.yaml > penstock_client/DIGEST

hooks: ## have git check the titles of your commits
	@git config core.hooksPath .githooks

lake-recompute: $(RUN_STAMP) ## rewrite a span of a lake table: PIPE= DESTINATION= REVISION= [SINCE= UNTIL= KEY=], times as 2026-11-21T12:00:00Z
	@$(BIN)/python -m localbox run -- $(BIN)/python -m dataplane.jobs.lake_recompute --pipe "$(PIPE)" \
		--destination "$(DESTINATION)" --revision "$(REVISION)" --since "$(SINCE)" --until "$(UNTIL)" $(if $(KEY),--key "$(KEY)")

bench: $(DEV_STAMP) ## measure each hop against a raw baseline, write var/bench/bench.json
	@$(BIN)/python -m tests.bench $(ONLY)
