#!/usr/bin/env bash
# Asks a server of its own whatever its OpenAPI description allows, and much that it does not (schemathesis):
# no answer may be a server error.   bash tests/schema.sh [SECONDS, 600]
# Not a part of `make test`: it brings a large tool along, in a Python environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
binary=${MILLPOND_BINARY:-target/release/millpond}
port=${PORT:-18766}
[ -x "$binary" ] || { echo "no $binary: make build, or name another in MILLPOND_BINARY" >&2; exit 2; }
environment=build/schemathesis
[ -x $environment/bin/schemathesis ] || {
    python3 -m venv $environment
    $environment/bin/pip install --quiet --disable-pip-version-check schemathesis==4.32.5
}
data=$(mktemp -d)
"$binary" server --listen "127.0.0.1:$port" --data "$data" > "$data.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -rf "$data" "$data.log"' EXIT
for _ in $(seq 300); do
    curl -sf "http://127.0.0.1:$port/ping" > /dev/null && break
    kill -0 $server 2>/dev/null || { cat "$data.log" >&2; exit 1; }
    sleep 0.1
done
$environment/bin/schemathesis run "http://127.0.0.1:$port/api/openapi.json" \
    --checks not_a_server_error --request-timeout 40 --max-time "$seconds" --max-examples 100000
curl -sf "http://127.0.0.1:$port/health" > /dev/null || { echo "the server is not well afterwards" >&2; cat "$data.log" >&2; exit 1; }
if grep -i panic "$data.log"; then exit 1; fi
