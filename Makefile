# Everything a new machine needs: `make demo` and `make test` build their own virtual environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo
BROWSERS := $(or $(SGFN_BROWSER),chromium chromium-browser google-chrome)

.PHONY: install browser demo test tests test-long faults check style types fast lint figures figures-train speed soak clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Reports in HTML are tested in a real browser: Debian's is installed where there is none and we may
browser:
	@for name in $(BROWSERS); do command -v "$$name" > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null && exit 0; \
	fi; \
	echo "no browser: install chromium or set SGFN_BROWSER to one, else tests of the page are skipped"

demo: install
	$(BIN)/sgfn train tfbind8 --preset table --out $(DEMO) --overwrite
	$(BIN)/sgfn evaluate $(DEMO)
	$(BIN)/sgfn sample $(DEMO) -n 2048 --out $(DEMO)/samples.csv --overwrite
	$(BIN)/sgfn report $(DEMO) --html

lint: style types

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/pyright

# one thread per process: more would wait for each other; what is compiled is kept, as tests start many processes
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest

# pyright has one core for most of a minute: tests run beside it
test: style browser
	$(MAKE) --no-print-directory -j 2 types tests

tests: install
	$(PYTEST) -n 2 --dist worksteal -m "not long"  # what a module shares is made once, and no worker is idle at the end

# what `make test` leaves out: what takes long and has a quicker sibling there, and more of the same faults
test-long: install
	$(PYTEST) -n 2 --dist worksteal -m long

# every bad input, three kills of each command, all pairs of writers, ten damaged folders a question
faults: install
	$(PYTEST) -n 2 --dist worksteal tests/faults

# lint, types and a slice of the tests that takes a minute
check: style
	$(MAKE) --no-print-directory -j 2 types fast

FAST := tests/config tests/noise tests/envs tests/nets tests/objectives tests/runs/test_formats.py tests/runs/test_copies.py \
	tests/test_type_checks.py
fast: install
	$(PYTEST) -n 2 --dist worksteal -m "not slow" $(FAST)

figures: install
	$(BIN)/python -m benchmarks.figures

# Every study anew: hours on a GPU. One that was finished leaves a stamp, so the same command goes on after a stop;
# `published` studies also keep the runs they have. `rm -r benchmarks/.trained` to begin again.
STUDIES := kl_family tfbind8_quality tfbind8_presets-exact tfbind8_presets-exact-kl tfbind8_presets-frugal \
	subtb motif thought confusion soft_optimum ceiling published-tfbind8 published-grid published-bits \
	forecast-all compiled_quality

figures-train: $(STUDIES:%=benchmarks/.trained/%)
	$(MAKE) figures

# as the committed files were made: seeds, device and threads are part of a study
THREE := kl_family tfbind8_presets-exact tfbind8_presets-exact-kl tfbind8_presets-frugal subtb motif confusion forecast-all \
	compiled_quality
ON_CPU := subtb motif thought confusion soft_optimum ceiling forecast-all compiled_quality

benchmarks/.trained/%: | install
	$(if $(filter $*,$(ON_CPU)),OMP_NUM_THREADS=1 )$(BIN)/python -m benchmarks.$(subst -, ,$*) \
		$(if $(filter $*,$(THREE)),--seeds 3) $(if $(filter ceiling,$*),--seeds 20) $(if $(filter $*,$(ON_CPU)),--device cpu)
	mkdir -p $(@D) && touch $@

# how fast this machine is, into runs/speed: leave it alone meanwhile (an hour on 2 cores); sizes that are there are not timed again
DEVICE ?= cpu
speed: install
	$(BIN)/python -m benchmarks.speed all --device $(DEVICE) --out runs/speed
	for study in sampling scaling agreement; do \
		$(BIN)/python -m benchmarks.$$study --device $(DEVICE) --out runs/speed/$${study}_$(DEVICE).json || exit 1; \
	done

# commands under kills, full disks, damaged and forged folders, compared bit for bit with undisturbed ones; prints and writes counts
MINUTES ?= 20
soak: install
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES)

clean:
	rm -rf $(DEMO) build dist .pytest_cache .ruff_cache
