#!/usr/bin/env bash
# Formatting, lints and tests of some crates, for every few minutes of work. Usage: quick.sh [CRATE...]
# Without arguments: the crates with changes that are not committed.
set -euo pipefail
cd "$(dirname "$0")/.."
crates=("$@")
if [ ${#crates[@]} = 0 ]; then
    mapfile -t crates < <(git status --porcelain -uall -- crates | sed -n 's#.* crates/\([^/]*\)/.*#\1#p' | sort -u)
fi
[ ${#crates[@]} != 0 ] || { echo "no crate has changed: name one, make quick CRATE=scheduler"; exit 0; }
packages=()
for crate in "${crates[@]}"; do
    [ -d "crates/$crate" ] || { echo "there is no crate $crate; ls crates shows them" >&2; exit 2; }
    name=millpond-$crate
    [ "$crate" != millpond ] || name=millpond
    packages+=(-p "$name")
done
echo "quick: ${crates[*]}"
cargo fmt --all --check
cargo clippy "${packages[@]}" --all-targets --locked -- -D warnings
cargo nextest run "${packages[@]}" --locked --lib --bins --tests
