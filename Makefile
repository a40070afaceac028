# Everything a user runs. Each target sets itself up in .venv; nothing outside this folder is changed,
# except that a Debian machine without python3-venv gets that package when this runs as root.
PYTHON ?= python3
BIN := .venv/bin
LIBRARIES := limiter proto client server broker proxy loadgen examples
STAMP := .venv/.ready

.PHONY: help demo test pythons proof fuzz image-check check bench protos picture lock clean setup

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## the environment alone

$(STAMP): requirements.lock requirements-java.lock pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py
	@touch $@

demo: $(STAMP)  ## the main job: a restart storm, three times, with a report (out/demo/report.html)
	@$(BIN)/python -m loadgen demo

test: $(STAMP)  ## all tests, under six minutes on two cores
	@$(BIN)/python -m pytest -n 3 --dist loadfile -m "not proof"

pythons:  ## all tests on several Pythons, each in a fresh clone: PYTHONS="python3.11 /usr/bin/python3"
	@$(PYTHON) tools/pythons.py $(PYTHONS)

proof: $(STAMP)  ## soaks, storms, kill loops and large imports; results in out/proof
	@$(BIN)/python -m tests.proof

fuzz: $(STAMP)  ## ten million inputs, looked for by coverage (hours); FUZZ="--share 0.01" for fewer
	@$(BIN)/python -m pip install -qq --require-hashes -r requirements-fuzz.lock
	@$(BIN)/python -m tests.fuzz $(FUZZ)

image-check: $(STAMP)  ## both images, built without a container engine (buildah, debootstrap), and run
	@$(BIN)/python -m tests.proof image_check

check: $(STAMP)  ## lint, format, types, import directions, clocks, programs of the pages, generated code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/check_clock.py $(LIBRARIES)
	@$(BIN)/python tools/check_programs.py
	@$(BIN)/python tools/protos.py --check

bench: $(STAMP)  ## what is fast, as ratios measured in one run; results in out/bench
	@$(BIN)/python -m benchmarks

protos: $(STAMP)  ## generate proto/PulsarApi_pb2.py and its stubs
	@$(BIN)/python tools/protos.py

picture: $(STAMP)  ## docs/images from the newest demo
	@$(BIN)/python -m loadgen picture

lock: $(STAMP)  ## resolve requirements.lock and those of Java and fuzzing again
	@$(BIN)/python tools/lock.py

clean:  ## remove what was made here
	rm -rf .venv out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
