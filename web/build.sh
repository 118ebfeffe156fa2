#!/usr/bin/env bash
# Builds the page into web/dist, where the build of the server looks for it, if anything has changed.
set -euo pipefail
cd "$(dirname "$0")"

bash ../tests/setup.sh web || exit 0
built=dist/page/index.html
newer=$(find src public scripts index.html package-lock.json vite.config.ts -newer "$built" -print -quit 2>/dev/null || echo all)
if [ -f "$built" ] && [ -z "$newer" ]; then
    exit 0
fi
echo "[web] building the page"
npm run --silent build
