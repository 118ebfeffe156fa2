#!/usr/bin/env bash
# Figures of the page in a real browser, with 2,000 pools and 100,000 operations (docs/benchmarks.md).
# Usage: bench/run.sh [--operations N] [--minutes M]. See e2e/cluster.sh for the variables.
set -euo pipefail
cd "$(dirname "$0")/.."
source e2e/cluster.sh

node bench/page.mjs "$@"
