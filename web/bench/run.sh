#!/usr/bin/env bash
# Figures of the page in a real browser (docs/benchmarks.md).
#   bench/run.sh page [--operations N]  tasks of the main thread, with 2,000 pools and 100,000 operations
#   bench/run.sh open [--minutes M] [--every MS]     heap of pages that are left open for an hour of changes
# See e2e/cluster.sh for the variables.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-page}
[ $# = 0 ] || shift
case $what in
    page | open) ;;
    *) echo "usage: bench/run.sh page [--operations N] | open [--minutes M] [--every MS]" >&2; exit 2 ;;
esac
source e2e/cluster.sh

node "bench/$what.mjs" "$@"
