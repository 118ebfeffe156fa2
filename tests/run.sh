#!/usr/bin/env bash
# Every test of the project, in order, with a count at the end. `make test` calls it.
#
# A step that fails does not stop the later ones, unless they need it: one run shows all that is
# wrong. The exit code is 0 only if everything passed and nothing is left on the machine.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"
# The same random cases each time: whether a change is good must not hang on the day it is tested.
# Other cases: cargo test without this, as often as wanted.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
mkdir -p build
steps=build/steps.txt
: >"$steps"
rm -f build/cargo-test.log build/pytest-counts.json build/vm.log build/web.log
started=$(date +%s)

heading() {
    printf '\n=== [%4d s] %s\n' "$(($(date +%s) - started))" "$*"
}

# step NAME COMMAND...: runs it and notes how it went.
step() {
    local name=$1 begin status
    shift
    heading "$name"
    begin=$(date +%s)
    "$@"
    status=$?
    printf '%s\t%s\t%s\n' "$name" "$status" "$(($(date +%s) - begin))" >>"$steps"
    [ "$status" = 0 ] || printf '!!! %s failed (exit code %s)\n' "$name" "$status"
    return "$status"
}

cargo_tests() {
    # Each line of progress of cargo is enough; failures are shown in full by it.
    cargo test --workspace --locked --no-fail-fast 2>&1 | tee build/cargo-test.log | grep --line-buffered -vE '^(test .* ok|running [0-9]+ tests?|)$'
    return "${PIPESTATUS[0]}"
}

python_tests() {
    .venv/bin/python -m pytest -q -c tests/pytest.ini --rootdir tests tests
}

# The page cannot be built everywhere; where it can, it is tested.
web_checks() {
    bash tests/setup.sh web || { echo "SKIPPED the web page: see above" | tee -a build/web.log; return 0; }
    (cd web && NO_COLOR=1 npm run --silent check && npm run --silent build) 2>&1 | tee -a build/web.log
    return "${PIPESTATUS[0]}"
}

web_browser() {
    [ -f web/dist/page/index.html ] || return 0
    bash tests/setup.sh browser || { echo "SKIPPED the web page in a browser: no chromium" | tee -a build/web.log; return 0; }
    NO_COLOR=1 bash web/e2e/run.sh 2>&1 | tee -a build/web.log
    return "${PIPESTATUS[0]}"
}

if ! step "install what is missing" bash tests/setup.sh python; then
    echo "Without the tools nothing can be tested."
    exit 1
fi
bash tests/setup.sh oci || echo "The tests of the job environment oci will be skipped."
before=$(mktemp)
trap 'rm -f "$before"' EXIT
.venv/bin/python tests/leftovers.py list >"$before"

step "formatting" cargo fmt --all --check
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "Rust tests: units, properties, one program per crate" cargo_tests
step "cgroup v2 in a virtual machine" bash tests/vm/run.sh build/vm.log
step "the web page: types, lints, units" web_checks
if step "release build" cargo build --release --locked -p millpond; then
    step "faults on 3,000 small simulated clusters" target/release/millpond sim faults --count 3000
    step "the yt client, clusters, command line, faults" python_tests
    step "the web page in a browser" web_browser
fi
step "nothing left on the machine" .venv/bin/python tests/leftovers.py compare "$before"

heading "summary"
.venv/bin/python tests/summary.py "$steps" build/cargo-test.log build/pytest-counts.json build/vm.log build/web.log
