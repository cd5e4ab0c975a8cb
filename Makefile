# Everything a user types. Each target sets up what it needs, and may be run again.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup up down status outputs preview test unit lint bench clean

BERTH := .venv/bin/berth
SANDBOX := python3 -m sandbox
DEV := --name berth-dev --dir .berth/sandbox

help: ## Show this
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: ## Python environment, Pulumi, local state
	@tools/setup

up: setup ## From a bare machine to served models, on the sandbox host
	@$(SANDBOX) up $(DEV) --ssh-port 2222 --gateway-port 8443
	@$(BERTH) up dev --fresh-if-changed .berth/sandbox/host_key.pub

down: setup ## Stack and sandbox host gone; caches of what was built stay
	@if $(SANDBOX) status --name berth-dev >/dev/null; then $(BERTH) down dev; else $(BERTH) forget dev; fi
	@$(SANDBOX) down $(DEV)

status: setup ## What runs now
	@$(BERTH) status dev

outputs: setup ## The stack's outputs as JSON
	@$(BERTH) outputs dev

preview: setup ## What `up` would change, judged by the policy pack
	@$(BERTH) preview dev

lint: setup ## ruff and mypy
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

unit: setup ## Fast tests: no Docker, no Triton
	@tools/test -q -m 'not triton and not sandbox and not toolchain and not races'

test: setup lint ## Everything, on a sandbox host of its own
	@tools/test

bench: setup ## Prints the benchmarks of docs/benchmarks.md; ONLY="gateway adapter": some of them
	@.venv/bin/python -m tests.bench $(ONLY)
