# Two commands do everything on a fresh machine:
#   make demo   build, start a cluster, replay a real workload with real processes, show the result
#   make test   every test of the project
SHELL := /bin/bash
BIN := target/release/millpond
# Where rustup puts the tools when it was installed without root.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: demo test build setup page bench soak fmt lint unit nightly e2e clean

build: setup page ## build the one binary
	cargo build --release --locked -p millpond

demo: build ## about two minutes of a real workload
	$(BIN) demo

test: ## everything: format, lints, unit and property tests, real cgroups, real yt client, faults
	bash tests/run.sh

setup: ## install what is missing (Rust toolchain, compiler, Python with venv) and say so
	bash tests/setup.sh base

page: ## build the web page that goes into the binary; without Node.js the binary is built without it
	bash web/build.sh

bench: build ## the figures of docs/benchmarks.md
	bash tests/setup.sh python
	.venv/bin/python -m bench.run

soak: build ## faults on small simulated clusters, seed after seed, until stopped
	$(BIN) sim faults --forever

unit: setup ## the Rust tests alone
	cargo test --workspace --locked

nightly: setup ## a million random trees: the invariants of fair shares, and the shipped form against the plain one
	MILLPOND_TREES=1000000 cargo test --release --locked -p millpond-fairshare --test main invariants
	MILLPOND_TREES=4000000 cargo test --release --locked -p millpond-fairshare --lib -- --exact compared::the_plain_form_gives_the_same

e2e: build ## the tests with real processes alone
	bash tests/setup.sh python
	.venv/bin/python -m pytest -q -c tests/pytest.ini --rootdir tests tests

fmt:
	cargo fmt --all
lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings

clean:
	cargo clean
	rm -rf .venv build web/node_modules web/dist/page
