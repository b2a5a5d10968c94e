# Three commands do everything on a fresh machine: make table1, make landmarks, make test. The rest is for developers.
PYTHON ?= python3
CORES ?= all
BIN := .venv/bin

.PHONY: table1 landmarks test test-slurm test-slow lint unit ci workflow setup setup-torch setup-dev lock clean

# The second call is instant, but where sources were made again (new code, a deleted download) it sees what
# Snakemake did not look at behind them.
table1: setup
	$(BIN)/snakemake --cores $(CORES) results/table1.csv results/judges.csv
	@$(BIN)/snakemake --cores $(CORES) --quiet all -- results/table1.csv results/judges.csv
	@cat results/table1.md

# The one table that needs torch.
landmarks: setup-torch
	$(BIN)/snakemake --cores $(CORES) results/landmarks.csv
	@$(BIN)/snakemake --cores $(CORES) --quiet all -- results/landmarks.csv
	@cat results/landmarks.md

test: setup-dev lint ci unit workflow

setup:
	@$(PYTHON) scripts/bootstrap.py requirements.txt

setup-dev:
	@$(PYTHON) scripts/bootstrap.py requirements.txt requirements-dev.txt requirements-torch.txt

# torch comes by pip, in whatever build pip is set to find (requirements-torch.in).
setup-torch:
	@$(PYTHON) scripts/bootstrap.py requirements.txt requirements-torch.txt

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

# The small run of every study: real models, six pages and four questions per cell, ten triplets, six cases.
CI := $(addprefix results/ci/tables/,table1.csv table1.html judges.csv tosc.csv tosc.html \
  mrarebench.csv mrarebench.html ragbench.csv ragbench.html ragbench.judges.csv landmarks.csv landmarks.html)
ci:
	$(BIN)/snakemake --cores $(CORES) $(CI)
	@$(BIN)/snakemake --cores $(CORES) --quiet all -- $(CI)

# The number of processes is the same whatever the machine: tests that measure times were written for two busy cores.
# A third of the time of unit tests is waiting for others: three share two cores.
unit:
	$(BIN)/pytest -n 3 tests/unit tests/contract -m "not slow"

workflow:
	$(BIN)/pytest -n 2 tests/workflow -m "not slow"

# A virtual SLURM cluster on this machine: the literal command from a fresh clone, failures, other kinds of sites.
# Needs root (and apt-get, where SLURM is missing); elsewhere it says so and its tests are skipped.
test-slurm: setup-dev ci
	@$(BIN)/python tests/slurm/run_all.py

test-slow: setup-dev ci
	$(BIN)/snakemake --cores $(CORES) results/environments/haiku-0-101.json
	$(BIN)/pytest tests/unit tests/contract -m slow
	$(BIN)/pytest tests/workflow -m slow
	$(BIN)/pytest tests/slurm -m slow

# Pins with hashes for Python 3.11 and later, from requirements*.in; what the packages of envs/ need, with hashes for
# the systems that have an environment of their own (envs/*.in).
lock: setup-dev
	for name in requirements requirements-dev requirements-torch; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url $$name.in -o $$name.txt; done
	$(BIN)/python envs/lock.py

clean:
	rm -rf .venv .pytest_cache .ruff_cache
