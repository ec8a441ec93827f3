# Targets that run Python first make .venv, if it is not there or not up to date. `make help` lists
# them all.

# Another Python, once chosen, stays: the environment says which made it.
PYTHON ?= $(or $(wildcard $(shell sed -n 's/^executable = //p' .venv/pyvenv.cfg 2>/dev/null)),python3)
BIN := .venv/bin
# In a container one is usually root, which Jupyter wants to be told.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

define MAKE_ENV
command -v $(PYTHON) >/dev/null || \
{ echo "make env: there is no $(PYTHON) here, and Python 3.11 or newer is needed." >&2; exit 1; }; \
$(PYTHON) tools/env.py
endef

# The reader's own Jupyter and matplotlib settings must not change what the notebooks print.
unexport JUPYTER_PATH MPLBACKEND MATPLOTLIBRC
export IPYTHONDIR := $(CURDIR)/tools/ipython

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env figures smoke test verify site explorer coverage lab bench refresh lock clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: ## make .venv from requirements.lock, and nothing else
	@$(MAKE_ENV)

figures: .venv/ready ## run every notebook and regenerate every figure and its data
	$(BIN)/python tools/notebooks.py run

smoke: export LDPCASH_FIGURES := $(CURDIR)/build/smoke/figures
smoke: export LDPCASH_RESULTS := $(CURDIR)/build/smoke/results
smoke: .venv/ready ## run every notebook with tiny parameters, and leave figures/ alone
	$(BIN)/python tools/notebooks.py run --parameters tools/smoke.yaml

verify: .venv/ready ## rebuild every figure in a scratch folder and compare with figures/
	$(BIN)/python tools/verify.py

site: .venv/ready ## make a web site of the notebooks and the library, to be read offline
	$(BIN)/python tools/site/make_site.py

explorer: .venv/ready ## simulate again what the site's explorer shows
	$(BIN)/python tools/site/explorer.py

coverage: .venv/ready ## measure how often the histogram's intervals hold the truth
	$(BIN)/python tools/coverage.py

test: export LDPCASH_FIGURES := $(CURDIR)/build/test-figures
test: .venv/ready ## lint, types, unit tests, and nbval: outputs and figures are recomputed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -p no:nbval --cov
	rm -rf "$$LDPCASH_FIGURES"
	$(BIN)/pytest --nbval --nbval-current-env notebooks
	$(BIN)/python tools/verify.py "$$LDPCASH_FIGURES"

lab: .venv/ready ## open JupyterLab on the notebooks; LAB="--port 9000" passes options on
	$(BIN)/jupyter lab --notebook-dir=notebooks $(AS_ROOT) $(LAB)

bench: export OPENBLAS_NUM_THREADS := 1
bench: .venv/ready ## measure the speed of decoders, protocols, sweeps and histograms
	$(BIN)/python tools/bench.py

refresh: .venv/ready ## run the notebooks and keep their outputs in notebooks/
	$(BIN)/python tools/notebooks.py refresh

lock: .venv/ready ## pin the newest versions of requirements.in in requirements.lock
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal \
	  --python-version 3.11 --fork-strategy fewest --generate-hashes --no-strip-extras \
	  requirements.in --output-file requirements.lock

clean: ## remove build/ with all stored results, and caches, but not .venv and not figures/
	rm -rf build __pycache__ .pytest_cache .mypy_cache .ruff_cache .hypothesis lib/*.egg-info
	find lib tests tools notebooks -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
	find tools/ipython -mindepth 2 ! -name ipython_kernel_config.py -delete

distclean: clean ## remove .venv too
	rm -rf .venv

.venv/ready: requirements.lock pyproject.toml tools/env.py
	@$(MAKE_ENV)
