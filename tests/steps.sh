#!/usr/bin/env bash
# Steps of tests/run.py that are more than one command. Usage: steps.sh page|browser
set -euo pipefail
cd "$(dirname "$0")/.."
export NO_COLOR=1

case "${1:-}" in
    # The page cannot be built everywhere; where it can, it is tested.
    page)
        bash tests/setup.sh web || { echo "SKIPPED the web page: see above"; exit 0; }
        cd web
        npm run --silent check
        npm run --silent build
        ;;
    browser)
        [ -f web/dist/page/index.html ] || { echo "SKIPPED the web page in a browser: no page is built"; exit 0; }
        bash tests/setup.sh browser || { echo "SKIPPED the web page in a browser: no chromium"; exit 0; }
        bash web/e2e/run.sh
        ;;
    *)
        echo "usage: steps.sh page|browser" >&2
        exit 2
        ;;
esac
