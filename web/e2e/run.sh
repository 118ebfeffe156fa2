#!/usr/bin/env bash
# The page in a real browser against a cluster of its own. Usage: e2e/run.sh [arguments of vitest]
# See cluster.sh for the variables that choose the binary and the browser.
set -euo pipefail
cd "$(dirname "$0")/.."
# A network of its own where root can make one: chromium cancels its requests when other tests add interfaces to the host.
if [ "$(id -u)" = 0 ] && [ -z "${MILLPOND_E2E_NETWORK:-}" ] && unshare --net true 2>/dev/null; then
    export MILLPOND_E2E_NETWORK=own
    exec unshare --net bash -c 'ip link set lo up && exec "$@"' bash e2e/run.sh "$@"
fi
guarded=yes
source e2e/cluster.sh

node node_modules/vitest/vitest.mjs run --config e2e/vitest.config.ts "$@"
