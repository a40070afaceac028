# Everything a user runs. Each target sets itself up in .venv; nothing outside this folder is changed,
# except that a Debian machine without python3-venv gets that package when this runs as root.
PYTHON ?= python3
BIN := .venv/bin
LIBRARIES := limiter proto client server broker proxy loadgen examples
STAMP := .venv/.ready

.PHONY: help demo test pythons proof fuzz image-check check packages size bench protos picture lock clean setup

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## install everything into .venv, without running anything

$(STAMP): requirements.lock requirements-java.lock pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py
	@touch $@

demo: $(STAMP)  ## start here: a restart storm, three times, with a report in out/demo/report.html (3 minutes)
	@$(BIN)/python -m loadgen demo

test: $(STAMP)  ## run all tests (under six minutes on two cores)
	@$(BIN)/python -m pytest -n 3 --dist loadfile -m "not proof"

pythons:  ## run all tests on several Pythons, each in a fresh clone: PYTHONS="python3.11 python3.13"
	@$(PYTHON) tools/pythons.py $(PYTHONS)

proof: $(STAMP)  ## run the release gates: storms, soaks, kill loops (about an hour); results in out/proof
	@$(BIN)/python -m tests.proof

fuzz: $(STAMP)  ## try ten million random inputs, guided by coverage (hours); FUZZ="--share 0.01" for fewer
	@$(BIN)/python -m pip install -qq --require-hashes -r requirements-fuzz.lock
	@$(BIN)/python -m tests.fuzz $(FUZZ)

image-check: $(STAMP)  ## build and run both images without a container engine (buildah, debootstrap)
	@$(BIN)/python -m tests.proof packages.images

check: $(STAMP)  ## check lint, format, types, imports, clocks, programs in docs, generated code, sizes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/check_clock.py $(LIBRARIES)
	@$(BIN)/python tools/check_programs.py
	@$(BIN)/python tools/protos.py --check
	@$(BIN)/python tools/size.py --check

packages: $(STAMP)  ## build the distributions, install each alone, and print sizes, times and memory beside their bounds
	@$(BIN)/python tools/packages.py

size: $(STAMP)  ## print how large packages, tests and docs are, beside their bounds
	@$(BIN)/python tools/size.py

bench: $(STAMP)  ## run the benchmarks, as ratios measured in one run; results in out/bench
	@$(BIN)/python -m benchmarks

protos: $(STAMP)  ## generate proto/PulsarApi_pb2.py and its stubs
	@$(BIN)/python tools/protos.py

picture: $(STAMP)  ## draw docs/images from the newest demo
	@$(BIN)/python -m loadgen picture $(addprefix out/demo/runs/,off pulsar floodgate) --out docs/images/demo.svg
	@$(BIN)/python -m loadgen picture $(addprefix out/demo/runs/stuck-,pulsar floodgate) --chart each.list --out docs/images/stuck.svg

lock: $(STAMP)  ## resolve requirements.lock again, and the locks for Java and fuzzing
	@$(BIN)/python tools/lock.py

clean:  ## remove .venv, out and everything that was built
	rm -rf .venv out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
