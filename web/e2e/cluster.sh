# To be sourced in the folder web: starts clusters of its own with the page, and stops them at the end.
# Sets MILLPOND_URL (the API), PAGE_URL (the page) and CHROMIUM; with `guarded=yes` also GUARDED_URL,
# GUARDED_PAGE and GUARDED_TOKEN (of root) of a second cluster that asks everybody who they are.
#   MILLPOND_BINARY   binary to start        [default: target/release/millpond of the repository]
#   MILLPOND_PAGE     folder of a built page [default: the page in the binary]
#   CHROMIUM          browser                [default: chromium-headless-shell or chromium in the PATH]

binary=${MILLPOND_BINARY:-../target/release/millpond}
CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium || true)}
export CHROMIUM
[ -x "$binary" ] || { echo "web: no binary at $binary (make build)" >&2; exit 2; }
[ -n "$CHROMIUM" ] || { echo "web: chromium is missing (apt-get install chromium-headless-shell)" >&2; exit 2; }
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

# start_cluster NAME [arguments of up]: leaves its address in $url, its data in $work/NAME.
start_cluster() {
    local name=$1
    shift
    : >"$work/$name.log"
    "$binary" up --listen 127.0.0.1:0 --data "$work/$name" --nodes 2 \
        --node-resources cpu=8,memory=8GiB,user_slots=32 "$@" >"$work/$name.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 600); do
        url=$(sed -n 's/^Millpond is ready on \(http[^ ]*\).*/\1/p' "$work/$name.log")
        [ -n "$url" ] && return
        sleep 0.2
    done
    echo "web: the cluster did not start:" >&2
    cat "$work/$name.log" >&2
    exit 1
}

# find_page API: leaves in $page_url where the page with this API behind it is: the page in the binary; of a
# binary without one, or if asked for, built files with the API behind them.
find_page() {
    local api=$1 page=${MILLPOND_PAGE:-} log
    page_url=$api
    if [ -z "$page" ] && [[ "$(curl -fsS -H 'Accept-Encoding: identity' "$api/")" != *'<div id="root">'* ]]; then
        page=dist/page
    fi
    [ -n "$page" ] || return 0
    [ -f "$page/index.html" ] || { echo "web: no page is built in $page (npm run build)" >&2; exit 2; }
    echo "web: the page is that of $page"
    log=$work/preview-${api##*:}.log
    : >"$log"
    MILLPOND_PROXY=${api#http://} node node_modules/vite/bin/vite.js preview --outDir "$page" --port 0 --host 127.0.0.1 >"$log" 2>&1 &
    pids+=($!)
    for _ in $(seq 600); do
        page_url=$(sed -nE 's/\x1b\[[0-9;]*m//g; \#http://127\.0\.0\.1:[0-9]#{s#.*(http://127\.0\.0\.1:[0-9]+).*#\1#p;q}' "$log")
        [ -n "$page_url" ] && return
        sleep 0.2
    done
    echo "web: the page is not served:" >&2
    cat "$log" >&2
    exit 1
}

# Without a question to other accounts of the host: that would be an alert.
start_cluster data --no-auth
find_page "$url"
export MILLPOND_URL=$url PAGE_URL=$page_url
if [ "${guarded:-}" = yes ]; then
    start_cluster guarded --auth
    find_page "$url"
    GUARDED_TOKEN=$(cat "$work/guarded/server/root.token")
    export GUARDED_URL=$url GUARDED_PAGE=$page_url GUARDED_TOKEN
fi
