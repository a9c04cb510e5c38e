# `make demo` and `make test` set everything up by themselves; nothing else has to be done first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-browser web-test fleet-test lint bench pack clean help

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# The stamp is last, so that an interrupted installation is made again.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[cpu,dev]"
	@touch $@

demo: $(STAMP) ## the sample portrait speaks: demo.webm
	$(BIN)/talkreel render samples/portrait.png samples/voice.wav -o demo.webm

# Three at a time, a file each: much of the fleet's tests is waiting.
test: $(STAMP) ## all tests but those that need a browser or Docker
	$(BIN)/python -m pytest -q -n 3 --dist loadfile

test-browser: $(STAMP) ## films play in headless Chromium
	$(BIN)/python -m pytest -q -m browser

web-test: $(STAMP) ## lowered graphs run in headless Chromium, on WASM and WebGPU
	$(BIN)/python -m pytest -q -m web tests/web

fleet-test: $(STAMP) ## the fleet in containers, on a real Docker engine (as root on Debian: installs one)
	$(BIN)/python -m pytest -q -m docker tests/deploy --durations=5

lint: $(STAMP) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP) ## seconds a stage
	$(BIN)/python -m tests.benchmarks.stages

pack: $(STAMP) ## rebuild the embedded pack's own graphs
	$(BIN)/python -m pipeline.packs.embedded.authoring

clean: ## remove what make made
	rm -rf $(VENV) demo.webm build dist *.egg-info
