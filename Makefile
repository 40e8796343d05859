# `make help` lists the targets. The two that matter: `make lab` and `make test`.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# May be given on the command line: make lab PYTHON=/path/to/python3.12 VENV=/tmp/venv ARGS=--no-browser
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))

# An environment knows the folder that it was made for. Moved or shared with another copy, it is refreshed.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
$(shell rm -f $(READY))
endif

.PHONY: help env lab test lint slides present images notebooks parity bench bench-explorers bench-model check-zoo parity-matrix lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=…, VENV=… and ARGS=… choose another Python, another place for the environment, more arguments."

env: $(READY) ## make the environment, if it is not there or not up to date

$(READY): requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "This course needs Python 3.11 or newer, and '$(PYTHON)' was not found. Install it, or name one: make lab PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "This course needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another: make lab PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make environments: its venv module is missing (on Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	@mkdir -p build
	@if $(RUN) -m pip --version >/dev/null 2>&1; then echo "Bringing the environment in $(VENV) up to date."; else \
	  echo "Making the environment in $(VENV): once, a few minutes. Log: build/install.log"; \
	  echo "(About 1.5 GB on disk; on Linux torch brings CUDA along, and it is 5 GB.)"; \
	  $(PYTHON) -m venv --clear $(VENV); fi
	@$(RUN) -m pip install --disable-pip-version-check --progress-bar off -r requirements.txt 2>&1 \
	  | tee build/install.log \
	  | awk -v tty="$$(test -t 1 && echo 1 || echo 0)" ' \
	      /^(Collecting|Requirement already)/ { n += 1; if (tty) printf "\r\033[K  %d packages looked up · %s", n, $$2; else if (n % 25 == 0) print "  " n " packages looked up" } \
	      /^ *Downloading/ { if (tty) printf "\r\033[K  downloading %s %s %s", $$2, $$3, $$4 } \
	      /^Installing collected/ { printf "%s", (tty ? "\r\033[K" : ""); print "  installing " NF - 3 " packages …" } \
	      { fflush() } \
	      END { if (tty) printf "\r\033[K" }' \
	  || { echo "The installation failed. The reason that pip gives (all of it is in build/install.log):"; \
	       grep -iE '^ *(ERROR|OSError|.*No space)' build/install.log | head -n 3 || tail -n 5 build/install.log; \
	       echo "Is there a network, and room on the disk? The same command tries again and keeps what was done."; exit 1; }
	@$(RUN) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e . \
	  || { echo "The course itself could not be installed in $(VENV). 'make clean' and the same command start anew."; exit 1; }
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	  > $(VENV)/share/jupyter/lab/settings/overrides.json
	@echo "$(CURDIR)" > $@
	@echo "The environment is ready."

lab: $(READY) ## open the course in JupyterLab
	@$(RUN) -m jupyter lab --ServerApp.root_dir="$(CURDIR)" $$(test "$$(id -u)" = 0 && echo --allow-root) \
	  --LabApp.default_url=/lab/tree/$(firstword $(NOTEBOOKS)) $(ARGS)

slides: $(READY) ## write every deck as HTML and PDF, and an index of them, to build/slides (needs Node; PDF needs Chromium)
	@$(RUN) -m lecture_utils.decks build

present: $(READY) ## serve the decks (with the presenter's window) and JupyterLab together, and print both addresses
	@$(RUN) -m lecture_utils.decks present $$(test "$$(id -u)" = 0 && echo --allow-root) $(ARGS)

# Two workers, one thread each: more threads than cores spend their time waiting for each other.
test: export OMP_NUM_THREADS = 1
test: $(READY) lint ## every test of the course as it is committed: lint, unit tests, every notebook, in a browser too (about twenty minutes)
	@echo "Unit tests"
	@$(RUN) -m pytest -n 2 --ignore tests/test_browser.py --ignore tests/test_deck_pages.py $(ARGS)
	@echo "Notebooks: each executed, and its text compared with what is stored"
	@$(RUN) -m pytest --nbval --nbval-current-env --nbval-cell-timeout 120 \
	  --nbval-sanitize-with tests/nbval_sanitize.cfg -n 2 --dist loadfile notebooks
	@echo "Browser: each notebook in JupyterLab, its explorers moved by keyboard and mouse, and each slide (pictures: build/screens)"
	@$(RUN) -m pytest -rs tests/test_browser.py tests/test_deck_pages.py
	@echo "All tests passed."

lint: $(READY) ## ruff over code and notebooks: rules and format
	@$(RUN) -m ruff check -q .
	@$(RUN) -m ruff format -q --check . || { echo "Not formatted: $(RUN) -m ruff format . repairs it."; exit 1; }

images: $(READY) ## draw images/*.svg anew
	@$(RUN) -m lecture_utils.plots

notebooks: $(READY) ## execute every notebook in place, top to bottom in a fresh kernel
	@mkdir -p build && $(RUN) -m jupyter nbconvert --to notebook --execute --inplace --log-level=ERROR \
	  --ExecutePreprocessor.timeout=120 --ExecutePreprocessor.record_timing=False \
	  --ExecutePreprocessor.store_widget_state=False \
	  --Exporter.preprocessors=nbconvert.preprocessors.CoalesceStreamsPreprocessor \
	  --Exporter.preprocessors=lecture_utils.stored.WithoutLiveWidgets $(NOTEBOOKS) 2> build/execute.log \
	  || { cat build/execute.log; exit 1; }

parity: $(READY) ## every part against Hugging Face, as a table (ARGS="--json FILE" writes it)
	@$(RUN) -m lecture_utils.parity $(ARGS)

bench: bench-explorers bench-model ## both of the next two; nothing else should run beside them

bench-explorers: $(READY) ## how quickly explorers answer, in a kernel and in a browser, beside `interact` (ARGS=rope is short)
	@OMP_NUM_THREADS=1 $(RUN) tests/bench_explorers.py $(ARGS)

bench-model: $(READY) ## how fast the model is, beside Hugging Face's: prefill, decode, training step
	@MALLOC_TRIM_THRESHOLD_=8000000000 MALLOC_MMAP_THRESHOLD_=4000000000 $(RUN) tests/bench_model.py

check-zoo: $(READY) ## every checker on 200 random sizes: right forms accepted, mistakes caught and named (long; ARGS="rms_norm --seeds 5" is short)
	@OMP_NUM_THREADS=1 $(RUN) tests/check_zoo.py $(ARGS)

# The versions with which parity is proved; each is unpacked beside the others and put first on the path.
MATRIX ?= 4.48.3 4.57.6 5.0.0 5.24.0
parity-matrix: $(READY) ## parity on old and new versions of transformers, which it installs; writes tests/records/
	@$(RUN) tests/parity_matrix.py $(MATRIX)

# CUDA's libraries are left out of the lock: the wheel of torch names the ones it needs.
TORCH ?= 2.13.0
lock: ## write requirements.txt anew from pyproject.toml (newest versions; torch is TORCH)
	@$(PYTHON) -m venv build/uv && build/uv/bin/pip install -q uv
	@echo torch==$(TORCH) > build/torch.txt
	@build/uv/bin/uv pip compile -q pyproject.toml --extra test --extra browser --universal --python-version 3.11 \
	  -c build/torch.txt --no-annotate --no-header -o build/lock.txt
	@{ echo "# Written by 'make lock' from pyproject.toml: the exact versions that 'make env' installs."; \
	  grep -vE '^(nvidia-|cuda-|triton)|emscripten.$$' build/lock.txt; } > requirements.txt

clean: ## remove the environment and everything that was built
	@rm -rf "$(VENV)" build slides/node_modules lecture_utils.egg-info .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
