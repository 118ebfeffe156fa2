#!/usr/bin/env bash
# Runs fuzz targets until each has had so many seconds of CPU, and says how many each has had in all: by the clock a
# target that shares its processor would run less than it seems.
#   bash fuzz/run.sh [--again] [SECONDS, 3600] [TARGET...]
# What was found to be new and the seconds of each target stay in build/fuzz (or FUZZ_STATE): a run that was stopped
# goes on where it was. Seconds count for the program that had them: a changed one begins with none. With --again all
# targets begin with none. A failing input is kept there too and ends the run with an error.
# Needs a nightly compiler (rustup toolchain install nightly) and nothing else.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$HOME/.cargo/bin:$PATH"
again=
[ "${1:-}" = --again ] && { again=yes; shift; }
seconds=3600
[[ ${1:-} =~ ^[0-9]+$ ]] && { seconds=$1; shift; }
mapfile -t all < <(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' Cargo.toml | sort)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
for target in "${targets[@]}"; do
    [[ " ${all[*]} " == *" $target "* ]] || { echo "no target $target: there are ${all[*]}" >&2; exit 2; }
done

host=$(rustc -vV | sed -n 's/^host: //p')
# What cargo-fuzz passes, without a sanitizer: outside of crate cage there is no unsafe code.
export RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
cargo +nightly build --release --target "$host" --bins --quiet
bin=${CARGO_TARGET_DIR:-target}/$host/release

state=${FUZZ_STATE:-../build/fuzz}
# Seconds of CPU that ended children of this shell have used.
cpu() { awk '{ print int($16 / 100) }' "/proc/$$/stat"; }
mkdir -p "$state"
for target in "${targets[@]}"; do
    record=$state/$target.seconds
    program=$(sha256sum < "$bin/$target" | cut -d ' ' -f 1)
    ran=0 of=
    [ -z "$again" ] && [ -e "$record" ] && read -r ran of < "$record"
    [ "$of" = "$program" ] || ran=0
    # In short turns: what was run counts even if somebody stops this in between.
    while [ "$ran" -lt "$seconds" ]; do
        turn=$((seconds - ran < 60 ? seconds - ran : 60))
        mkdir -p "$state/$target"
        before=$(cpu)
        "$bin/$target" -max_total_time="$turn" -timeout=300 -rss_limit_mb=4096 -max_len=65536 -verbosity=0 \
            -artifact_prefix="$state/$target-finding-" "$state/$target" "seeds/$target" > "$state/$target.log" 2>&1 || {
            tail -40 "$state/$target.log" >&2
            echo "$target: a finding after $ran seconds, see $state" >&2
            exit 1
        }
        ran=$((ran + $(cpu) - before))
        echo "$ran $program" > "$record"
    done
    echo "$target: $ran seconds without a finding, $(find "$state/$target" -type f | wc -l) inputs"
done
