# Two commands do everything on a fresh machine:
#   make demo   build, start a cluster, replay a real workload with real processes, show the result
#   make test   every test of the project
SHELL := /bin/bash
BIN := target/release/millpond
# Where rustup and pip put the tools.
export PATH := $(CURDIR)/.venv/bin:$(HOME)/.cargo/bin:$(PATH)

.PHONY: demo test quick build setup page bench bench-check soak soak-kill fmt lint unit nightly e2e clean

build: setup page ## build the one binary
	cargo build --release --locked -p millpond

demo: build ## about two minutes of a real workload
	$(BIN) demo

test: ## every test: format, lints, units and properties, real cgroups, real yt client, faults, browser, benchmarks' counts
	bash tests/run.sh

quick: setup ## while working: formatting, lints and tests of one crate, `make quick CRATE=scheduler` (default: crates that differ from HEAD)
	bash tests/setup.sh python
	bash tests/quick.sh $(CRATE)

setup: ## install what is missing (Rust toolchain, compiler, Python with venv) and say so
	bash tests/setup.sh base

page: ## build the web page that goes into the binary; without Node.js the binary is built without it
	bash web/build.sh

bench: build ## the figures of docs/benchmarks.md
	bash tests/setup.sh python
	.venv/bin/python -m bench.run

bench-check: setup ## counts against bench/baseline.toml; `BASE=REV` against a commit, `UPDATE="reason"` stores today's counts
	bash tests/setup.sh python
	bash tests/setup.sh counters || true
	.venv/bin/python -m bench.check $(if $(BASE),--base $(BASE)) $(if $(UPDATE),--update --reason "$(UPDATE)")

soak-kill: build ## kill -9 of server, agents, spawners and proxies under load for MINUTES=10, every acknowledged change is checked
	bash tests/setup.sh python
	MILLPOND_BINARY=$(CURDIR)/$(BIN) .venv/bin/python tests/faults/soak_kill.py $(or $(MINUTES),10) $(SEED)

soak: build ## faults on small simulated clusters, seed after seed, until stopped
	$(BIN) sim faults --forever

unit: setup ## the Rust tests alone
	bash tests/setup.sh python
	cargo nextest run --workspace --locked --lib --bins --tests
	cargo nextest run --workspace --locked --lib --bins --tests --profile alone

nightly: setup ## what takes hours: whole simulations instead of their beginnings, a million random trees, fuzzing
	bash tests/setup.sh python
	MILLPOND_WHOLE=1 cargo nextest run --release --locked -p millpond-sim --profile nightly
	MILLPOND_TREES=1000000 cargo test --release --locked -p millpond-fairshare --test main invariants
	MILLPOND_TREES=4000000 cargo test --release --locked -p millpond-fairshare --lib -- --exact compared::the_plain_form_gives_the_same
	bash fuzz/run.sh --again 600

e2e: build ## the tests with real processes alone
	bash tests/setup.sh python
	MILLPOND_BINARY=$(CURDIR)/$(BIN) .venv/bin/python -m pytest -q -c tests/pytest.ini --rootdir tests tests -n 4 --dist loadfile -m "not serial"
	MILLPOND_BINARY=$(CURDIR)/$(BIN) .venv/bin/python -m pytest -q -c tests/pytest.ini --rootdir tests tests -n 0 -m serial --add-counts

fmt:
	cargo fmt --all
lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings

clean:
	cargo clean
	rm -rf .venv build web/node_modules web/dist/page
