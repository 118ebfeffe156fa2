#!/usr/bin/env bash
# Every test of the project: `make test`. Installs what is missing, then tests/run.py does the rest.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$HOME/.cargo/bin:$PATH"

bash tests/setup.sh python || { echo "Without these tools nothing can be tested."; exit 1; }
bash tests/setup.sh oci || echo "The tests of the job environment oci will be skipped."
bash tests/setup.sh vm || echo "The tests in a virtual machine will be skipped."
bash tests/setup.sh counters || echo "The benchmarks will be skipped."
bash tests/setup.sh web || echo "The tests of the web page will be skipped."
bash tests/setup.sh browser || echo "The tests in a browser will be skipped."
exec .venv/bin/python tests/run.py
