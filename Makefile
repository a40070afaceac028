# Everything a user runs. Each target sets itself up in .venv; nothing outside this folder is changed,
# except that a Debian machine without python3-venv gets that package when this runs as root.
PYTHON ?= python3
BIN := .venv/bin
LIBRARIES := limiter proto client server broker proxy loadgen examples
STAMP := .venv/.ready
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: help demo test pythons proof fuzz image-check check packages size bench protos picture lock clean setup site workflows audit release

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## install everything into .venv, without running anything

$(STAMP): requirements.lock requirements-java.lock pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py
	@touch $@

demo: $(STAMP)  ## start here: a restart storm, three times, with a report in out/demo/report.html (3 minutes)
	@$(BIN)/python -m loadgen demo

# The tools of the site and of releases have environments of their own: few who work here need them.
.tools/%/.ready: requirements-%.lock tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $*
	@touch $@

# Compiled modules are kept even where the environment forbids it: each of three workers, and hundreds
# of processes that tests start, would compile all of them again.
test: $(STAMP)  ## run all tests (under six minutes on two cores)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadfile -m "not proof"

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
	@$(BIN)/python tools/packages.py --check
	@$(BIN)/python tools/size.py --check

packages: $(STAMP)  ## build the distributions, install each alone, and print sizes, times and memory beside their bounds
	@$(BIN)/python tools/packages.py

size: $(STAMP)  ## print how large packages, tests and docs are, beside their bounds
	@$(BIN)/python tools/size.py

bench: $(STAMP)  ## run the benchmarks, as ratios measured in one run; results in out/bench
	@$(BIN)/python -m benchmarks

protos: $(STAMP)  ## generate proto/PulsarApi_pb2.py and its stubs
	@$(BIN)/python tools/protos.py

site: .tools/docs/.ready  ## build the documentation as a site into out/site, with every link checked
	@NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --strict --config-file tools/site/mkdocs.yml
	@echo "Open out/site/index.html"

workflows:  ## check .github/workflows with actionlint, where it or Go is installed
	@if command -v actionlint >/dev/null; then actionlint; \
	elif command -v go >/dev/null; then go run $(ACTIONLINT); \
	else echo "The workflows were not checked: neither actionlint nor Go is installed"; fi

audit: .tools/release/.ready  ## look up known holes of every locked package
	@for lock in requirements*.lock; do .tools/release/bin/pip-audit --strict --disable-pip --require-hashes -r $$lock || exit; done

release: .tools/release/.ready  ## make wheels, source archive, SBOMs and checksums in dist; TAG=v0.2.0 has to fit
	@.tools/release/bin/python -m tools.release $(if $(TAG),--tag "$(TAG)")

picture: $(STAMP)  ## draw docs/images from the newest demo
	@$(BIN)/python -m loadgen picture $(addprefix out/demo/runs/,off pulsar floodgate) --out docs/images/demo.svg
	@$(BIN)/python -m loadgen picture $(addprefix out/demo/runs/stuck-,pulsar floodgate) --chart each.list --out docs/images/stuck.svg

lock: $(STAMP)  ## resolve requirements.lock again, and the locks for Java and fuzzing
	@$(BIN)/python tools/lock.py

clean:  ## remove .venv, out and everything that was built
	rm -rf .venv .tools out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
