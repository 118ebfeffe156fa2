#!/usr/bin/env bash
# The page in a real browser against a cluster of its own. Usage: e2e/run.sh [arguments of vitest]
# See cluster.sh for the variables that choose the binary and the browser.
set -euo pipefail
cd "$(dirname "$0")/.."
guarded=yes
source e2e/cluster.sh

node node_modules/vitest/vitest.mjs run --config e2e/vitest.config.ts "$@"
