# To be sourced in the folder web: starts a cluster of its own with the page, and stops it at the end.
# Sets MILLPOND_URL (the API), PAGE_URL (the page) and CHROMIUM.
#   MILLPOND_BINARY   binary to start        [default: target/release/millpond of the repository]
#   MILLPOND_PAGE     folder of a built page [default: the page in the binary]
#   CHROMIUM          browser                [default: chromium in the PATH]

binary=${MILLPOND_BINARY:-../target/release/millpond}
CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
export CHROMIUM
[ -x "$binary" ] || { echo "web: no binary at $binary (make build)" >&2; exit 2; }
[ -n "$CHROMIUM" ] || { echo "web: chromium is missing (apt-get install chromium)" >&2; exit 2; }
[ -d node_modules ] || { echo "web: packages are missing (npm ci)" >&2; exit 2; }

work=$(mktemp -d)
pids=()
stop() {
    # The last one started goes first. Nodes stop their jobs, so this takes a moment.
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        kill -TERM "${pids[i]}" 2>/dev/null || true
        wait "${pids[i]}" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT

"$binary" up --listen 127.0.0.1:0 --data "$work/data" --nodes 2 \
    --node-resources cpu=8,memory=8GiB,user_slots=32 >"$work/up.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
    url=$(sed -n 's/^Millpond is ready on \(http[^ ]*\).*/\1/p' "$work/up.log")
    [ -n "$url" ] && break
    sleep 0.2
done
[ -n "$url" ] || { echo "web: the cluster did not start:" >&2; cat "$work/up.log" >&2; exit 1; }
export MILLPOND_URL=$url

# The page in the binary; of a binary without one, or if asked for, built files with the API behind them.
export PAGE_URL=$url
page=${MILLPOND_PAGE:-}
if [ -z "$page" ] && ! curl -fsS -H 'Accept-Encoding: identity' "$url/" | grep -q '<div id="root">'; then
    page=dist/page
fi
if [ -n "$page" ]; then
    [ -f "$page/index.html" ] || { echo "web: no page is built in $page (npm run build)" >&2; exit 2; }
    echo "web: the page is that of $page"
    MILLPOND_PROXY=${url#http://} node node_modules/vite/bin/vite.js preview --outDir "$page" --port 0 --host 127.0.0.1 >"$work/preview.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 50); do
        PAGE_URL=$(sed 's/\x1b\[[0-9;]*m//g' "$work/preview.log" | sed -n 's/.*\(http:\/\/127.0.0.1:[0-9]*\).*/\1/p' | head -1)
        [ -n "$PAGE_URL" ] && break
        sleep 0.2
    done
fi
