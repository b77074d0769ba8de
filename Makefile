# The commands of a working day; the README shows `demo` and `test`.
.PHONY: setup setup-test setup-bench servers demo test test-servers test-alone test-attacks test-statistics test-timed test-harm test-keep test-recipes test-kills sbom audit check check-lint check-rust check-python golden wheel man deb rpm packages-arm64 container setup-packages test-packages fuzz fuzz-harm bench-probe bench-digest bench-decisions bench-effect bench-lease bench-audit bench-diagnose bench-diagnose-real bench-real bench-tpcc bench-restore bench-lab clean setup-vm test-vm
PY = .venv/bin/python
SHORT = not statistics and not timed
SIDE_BY_SIDE = -n 2 --dist loadscope
WAITING = -n 4 --dist loadscope  # campaigns wait more than they compute; each worker has its own host lock
TIERS = "check servers" test-servers test-alone test-attacks  # the servers are fetched beside what needs none

# Matrices are small: threads of two workers only wait for each other.
check test-servers test-alone test-attacks: export OPENBLAS_NUM_THREADS ?= 1

setup: ## install what is missing and build
	@packaging/setup.sh run

setup-test:
	@packaging/setup.sh test

servers: ## the real servers that the tests run on
	@packaging/servers.sh

demo: setup ## which of four configurations is better, on a real server, with a report
	@.venv/bin/mydyno run demo -o demo-run

test: setup-test ## all but the long suites: real servers, real devices, a real browser; prints each tier's time
	@for tier in $(TIERS); do \
	  began=$$(date +%s); \
	  $(MAKE) --no-print-directory -j2 $$tier || exit; \
	  spent="$$spent\n$$tier: $$(($$(date +%s) - began)) s"; \
	done; printf "$$spent\n"

test-servers: ## contracts, integration and campaigns, side by side
	@$(PY) -m pytest -q $(WAITING) --beyond-check --durations=20 -m "$(SHORT) and not alone" tests/contract tests/integration tests/e2e

test-alone: ## what changes settings or devices of the machine, one by one
	@$(PY) -m pytest -q --durations=5 -m "$(SHORT) and alone" tests/contract tests/integration tests/e2e

test-attacks: ## the fast half of the attacks and faults
	@$(PY) -m pytest -q $(SIDE_BY_SIDE) --durations=5 -m "not slow and not timed and not alone" tests/harm
	@$(PY) -m pytest -q --durations=10 -m "not slow and not timed and alone" tests/harm

test-statistics: setup-test ## error rates and coverage, over thousands of simulated campaigns
	@$(PY) -m pytest -q -m statistics tests

test-timed: setup-test servers ## what must be done within seconds or at a rate; on an idle machine
	@$(PY) -m pytest -q -m timed tests

test-harm: setup-test servers ## every attack and fault, as root; SHARD=1/4 does a quarter, ≤ 60 min
	@$(PY) -m pytest -q -p no:randomly tests/harm --shard $(or $(SHARD),1/1)

test-recipes: servers ## each recipe at small scale, on MariaDB and MySQL; SHARD=1/6, goes on where it ended
	@$(PY) -m pytest -q -p no:randomly tests/recipes --shard $(or $(SHARD),1/1)

test-keep: servers ## exports, read by the tools that they are for; leases, on hosts run by systemd
	@packaging/setup.sh keep
	@packaging/guest.sh
	@$(PY) -m pytest -q -n 3 tests/keep

test-kills: servers ## what is killed at any step of a lease; ARGS="--random 50" shortens it
	@packaging/setup.sh keep
	@$(PY) tests/keep/kill_points.py --calls $(ARGS)

bench-lease: servers ## what a lease costs and catches: cut connections, time without SQL, regressions
	@packaging/setup.sh keep
	@$(PY) tests/keep/measures.py $(ARGS)

setup-vm:
	@packaging/setup.sh vm

test-vm: setup-vm ## the VM lab: image, md, ZFS, kernels, reboots; root, and an hour without KVM
	@$(PY) -m pytest -q -p no:randomly -p no:cacheprovider --capture=sys tests/vm

check: ## the fast gate: format, lint, types, imports, unit and golden tests; three parts at once
	@test -x .venv/bin/ruff || packaging/setup.sh test
	@$(MAKE) --no-print-directory --output-sync=target -j3 check-python check-rust check-lint

check-python:
	@$(PY) -m pytest -q $(SIDE_BY_SIDE) -m "$(SHORT) and not root and not mysqld" tests/unit tests/golden tests/docs tests/contract tests/e2e/test_killed_campaign.py

check-lint:
	@.venv/bin/ruff format --check --quiet src packages tests bench
	@.venv/bin/ruff check --quiet src packages tests bench
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/lint-imports --no-cache >/tmp/mydyno-imports.$$$$ 2>&1 || { cat /tmp/mydyno-imports.$$$$; exit 1; }; rm -f /tmp/mydyno-imports.*

check-rust:
	@if cargo fmt --version >/dev/null 2>&1; then cargo fmt --check; else echo "rustfmt is not here: not checked"; fi
	@if cargo clippy --version >/dev/null 2>&1; then MAKEFLAGS= cargo clippy --quiet --all-targets --locked -- -D warnings; else echo "clippy is not here: not checked"; fi
	@MAKEFLAGS= cargo test --quiet --locked  # it would take part in the jobs of make, which does not let it

golden: ## write the golden files again; read the difference as code
	@MYDYNO_GOLDEN=write $(PY) -m pytest -q tests/golden

wheel: setup ## one wheel that holds the probe too, for this processor, and those of the extras
	@packaging/wheel.sh

man: setup ## man pages and shell completions, from the commands, in target/share
	@$(PY) packaging/man.py

deb: wheel ## dist/mydyno_*.deb for this processor, with the Python of this distribution
	@$(PY) packaging/packages.py deb

rpm: wheel ## the same as an rpm
	@$(PY) packaging/packages.py rpm

packages-arm64: wheel ## the three programs, .deb and .rpm for ARM64, built on another processor
	@packaging/arm64.sh
	@$(PY) packaging/packages.py --arch arm64 deb rpm

container: deb ## a container image mydyno from the .deb; BASE=… names another image of Debian 12
	@buildah bud $(ARGS) $(if $(BASE),--build-arg BASE=$(BASE)) -t mydyno -f packaging/Containerfile .

setup-packages:
	@packaging/setup.sh packages

test-packages: setup-packages deb rpm ## wheel, .deb, .rpm, container and ARM64, each in a clean tree; root, half an hour
	@$(PY) -m pytest -q -p no:randomly tests/clean

sbom: ## what mydyno is built from, with hashes: mydyno.cdx.json (CycloneDX)
	@$(PY) packaging/sbom.py mydyno.cdx.json

audit: ## the locks against published advisories; lists what could not be checked
	@packaging/audit.sh

fuzz: ## the slow-log parser against invented input, MINUTES=20
	@bench/fuzz.sh $(or $(MINUTES),20)

fuzz-harm: setup-test ## journals, lines of a program, probe files against invented input; root, MINUTES=20
	@$(PY) tests/harm/fuzz_inputs.py --minutes $(or $(MINUTES),20)

setup-bench: setup-test
	@packaging/setup.sh bench

bench-probe: setup-bench servers ## the sampler beside its peers; ARGS=… shortens it
	@$(PY) bench/probe.py $(ARGS)

bench-digest: setup-bench ## the digest beside its peers
	@$(PY) bench/digest.py $(ARGS)

bench-decisions: setup-bench ## how often decisions are right, on simulated hosts; ARGS=… shortens it
	@OPENBLAS_NUM_THREADS=1 $(PY) bench/decisions.py $(ARGS)  # its matrices are small; threads only wait for each other

bench-diagnose: setup-test ## diagnoses of simulated networks whose elasticities are known: a minute
	@OPENBLAS_NUM_THREADS=1 $(PY) bench/diagnose.py $(ARGS)

bench-effect: setup-test ## effects in simulated production whose truth is known: ten minutes
	@OPENBLAS_NUM_THREADS=1 $(PY) bench/effect.py $(ARGS)

bench-audit: setup-bench servers ## planted faults: audit beside MySQLTuner and pt-variable-advisor
	@cd bench && $(CURDIR)/$(PY) audit_planted.py

bench-diagnose-real: setup-test servers ## diagnoses of planted faults on real servers; goes on where it was cut off
	@$(PY) bench/diagnose_real.py evidence $(ARGS)
	@$(PY) bench/diagnose_real.py proof $(ARGS)
	@$(PY) bench/diagnose_real.py table

bench-real: setup-bench servers ## decisions on a real server: doses live, and injected into its traces
	@$(PY) bench/real.py $(ARGS)

bench-tpcc: setup-bench servers ## TPC-C under sysbench beside go-tpc, on one server
	@packaging/go-tpc.sh
	@$(PY) bench/tpcc.py $(ARGS)

bench-restore: setup-bench ## snapshots restored, beside cp -a; as root; ARGS=… shortens it
	@$(PY) bench/restore.py $(ARGS)

bench-lab: setup-test ## striped lab disks: what is promised, what is measured; needs root
	@$(PY) bench/lab.py $(ARGS)

clean:
	@rm -rf .venv target runs demo-run
