#!/usr/bin/env bash
# Looks at all dependencies by the rules of deny.toml: licences, sources, crates that are there twice, and known weaknesses if a
# copy of the database of advisories is at hand. Needs no network: the crates are there when the project was built.
#   bash tests/dependencies.sh
# To get the copy, where the network allows it: cargo deny fetch db
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$HOME/.cargo/bin:$PATH"

mkdir -p build
# Only what is built on this host: crates for other systems need not be there.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo metadata --locked --offline --filter-platform "$host" --format-version 1 > build/metadata.json
# On success only the last line counts: the log begins with complaints about crates of other systems that are not here.
check() {
    local told
    if told=$(cargo deny --log-level error --offline --metadata-path build/metadata.json check -D warnings "$@" 2>&1); then
        tail -n 1 <<< "$told"
    else
        printf '%s\n' "$told"
        return 1
    fi
}
check licenses bans sources
database=${CARGO_HOME:-$HOME/.cargo}/advisory-dbs
if [ -n "$(find "$database" -mindepth 1 -maxdepth 1 -type d 2>/dev/null)" ]; then
    check advisories
else
    echo "SKIPPED advisories of dependencies: there is no copy of the database in $database (cargo deny fetch db)"
fi
