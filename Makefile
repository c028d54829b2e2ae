# Everything starts here; each target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.setup-done
DEMO_READY := .venv-demo/.setup-done
FEDERATION_READY := .venv-federation/.setup-done

# Small matrices on few cores: more threads only get in each other's way.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

PIP = -m pip install -qq --disable-pip-version-check --root-user-action=ignore
INSTALL = $(PIP) -c constraints.txt

.PHONY: help setup demo quick test check format client bench mutants pythons engines lock docs release reproductions clean
.DEFAULT_GOAL := help

help: ## show the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

setup: $(READY) $(FEDERATION_READY) ## create .venv with every extra but gpu, and the development tools

$(READY): pyproject.toml bench/pyproject.toml constraints.txt
	@echo "setting up $(VENV) (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(INSTALL) -e '.[dev]' -e bench
	@touch $@

$(DEMO_READY): pyproject.toml constraints.txt
	@echo "setting up .venv-demo (a minute the first time)"
	@test -x .venv-demo/bin/python || $(PYTHON) -m venv .venv-demo
	@.venv-demo/bin/python $(INSTALL) --no-compile -e '.[demo]'
	@touch $@

# Flower wants older versions of what the collector needs: it has an environment of its own.
$(FEDERATION_READY): pyproject.toml constraints-federation.txt
	@echo "setting up .venv-federation (a minute the first time)"
	@test -x .venv-federation/bin/python || $(PYTHON) -m venv .venv-federation
	@.venv-federation/bin/python $(PIP) --no-compile -c constraints-federation.txt -e '.[federation]'
	@touch $@

# The full environment serves the demo where it exists; otherwise a light one is made.
ifneq ($(wildcard $(READY)),)
demo: $(READY) ## install what the main job needs, and run it
	@$(BIN)/dpfda demo
else
demo: $(DEMO_READY)
	@.venv-demo/bin/dpfda demo
endif

# What one runs while editing: every layer once, from the samplers up to one study and one release.
QUICK := tests/noise/test_lattice.py tests/noise/test_law.py tests/noise/test_uniform.py \
  tests/mechanisms/test_responses.py tests/mechanisms/test_piecewise.py \
  tests/privacy/test_ledger.py tests/privacy/test_price.py tests/privacy/test_cost.py \
  tests/curves/test_basis.py tests/curves/test_rescale.py \
  tests/protocol/test_query.py tests/protocol/test_fields.py tests/protocol/test_person.py \
  tests/protocol/test_plan.py tests/protocol/test_task.py tests/protocol/test_secure_sum_parts.py \
  tests/central/test_questions.py tests/local/test_formulas.py tests/test_errors.py

quick: $(READY) ## lint, types and the quickest tests of every layer, in 90 seconds
	@$(BIN)/ruff check -q . && $(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q -x -n 2 --dist worksteal $(QUICK)

test: $(READY) $(FEDERATION_READY) ## run every test, documentation included
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

check: $(READY) ## lint, formatting, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(READY) ## put the source into its form
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

client: ## build the browser client into the package and test it (needs Node)
	@cd clients/browser && npm ci --silent && npm test && npm run --silent build

bench: $(READY) ## measure every benchmark beside its goal
	@$(BIN)/dpfda bench --all

mutants: $(READY) ## break privacy-relevant lines one at a time; a test must notice each
	@$(BIN)/python tools/mutants.py

pythons: ## quick tests on every promised Python version that this machine has
	@$(PYTHON) tools/pythons.py

ENGINES := .venv-engines/bin/python
engines: ## fit on Ray and Spark, in an environment of their own (needs Java)
	@test -x $(ENGINES) || $(PYTHON) -m venv .venv-engines
	@$(ENGINES) $(INSTALL) -e '.[dev]' -e bench 'ray[data]>=2.40,<3' 'pyspark>=4,<5'
	@$(ENGINES) -m pytest -q tests/estimators/test_engines.py

lock: ## write constraints.txt anew: the newest versions that pyproject.toml allows
	@$(PYTHON) tools/lock.py

docs: $(READY) ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

RELEASE_READY := .venv-release/.setup-done
$(RELEASE_READY): Makefile
	@test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	@.venv-release/bin/python $(PIP) 'build>=1.2,<2' 'hatchling>=1.27,<1.28' 'twine>=6,<7' 'cyclonedx-bom>=7,<8'
	@touch $@

release: $(RELEASE_READY) ## build wheels and archives twice, check them, run the README where they are installed, list what is in them
	@.venv-release/bin/python tools/release.py

reproductions: $(READY) ## every table and figure of the papers, and the page about them (an hour; ENTRIES=--missing goes on)
	@$(BIN)/python tools/reproductions.py $(ENTRIES)

clean: ## remove environments and everything that was built
	@rm -rf .venv .venv-demo .venv-engines .venv-federation .venv-release .pythons build dist site out .pytest_cache .mypy_cache .ruff_cache \
	  .hypothesis .import_linter_cache .mutants
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
