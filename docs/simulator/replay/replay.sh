#!/bin/bash
# Replay: operations run on a cluster of real nodes on this machine; its event log is imported and run in the
# simulator; the finish times of both are compared (docs/simulator/acceptance.md, point 6).
#
#   MILLPOND=target/release/millpond docs/simulator/replay/replay.sh [DIRECTORY]
#
# Takes about three minutes. Jobs only sleep, so a small machine is enough. Exit code 1: the median of the
# differences is above 5 %.
set -euo pipefail
millpond=$(realpath "${MILLPOND:-target/release/millpond}")
here=$(realpath "$(dirname "$0")")
out=$(mkdir -p "${1:-/tmp/millpond-replay}" && realpath "${1:-/tmp/millpond-replay}")
rm -rf "$out"/{data,snapshot,run,up.log,events.jsonl,work.jsonl,imported.json}

"$millpond" up --data "$out/data" --listen 127.0.0.1:0 --no-auth --nodes 3 \
    --node-resources cpu=4,memory=8GiB,user_slots=16 > "$out/up.log" 2>&1 &
up=$!
trap 'kill -TERM $up 2>/dev/null; wait $up || true' EXIT
until MILLPOND_PROXY=$(grep -oE '127\.0\.0\.1:[0-9]+' "$out/up.log" | head -1) && [ -n "$MILLPOND_PROXY" ]; do
    kill -0 $up
    sleep 0.2
done
export MILLPOND_PROXY
until [ "$("$millpond" node list --json 2>/dev/null | grep -c '"state": *"online"' )" -ge 3 ]; do
    kill -0 $up
    sleep 0.2
done

"$millpond" pool create prod --guarantee cpu=6 > /dev/null
"$millpond" pool create dev > /dev/null
"$millpond" pool create batch --weight 2 > /dev/null
# Cluster and pools as they are now.
"$millpond" sim snapshot --out "$out/snapshot" > /dev/null

# start POOL CORES JOBS SHORTEST SPREAD: jobs of SHORTEST and up to SPREAD - 1 seconds more.
start() {
    "$millpond" run --quiet --pool "$1" --cpu "$2" --memory 128MiB --jobs "$3" -- \
        bash -c "sleep \$(($4 + YT_JOB_COOKIE * 7 % $5))" >> "$out/started"
}
: > "$out/started"
start dev 1 30 8 9
sleep 6
start batch 2 12 10 11
sleep 9
start prod 1 16 12 8
start dev 0.5 20 5 4
sleep 14
start prod 2 6 15 10
start batch 1 18 6 13
sleep 20
start dev 1 8 20 5
while read -r id; do
    until "$millpond" op get "$id" --json | grep -qE '"state": *"(completed|failed|aborted)"'; do
        sleep 1
    done
done < "$out/started"

"$millpond" events --from 1 --limit 100000 --json > "$out/events.jsonl"
"$millpond" sim import event-log "$out/events.jsonl" --out "$out/work.jsonl" > "$out/imported.json"
"$millpond" --quiet sim run "$out/snapshot/scenario.json" --set "/workload=[\"$out/work.jsonl\"]" --out "$out/run" > /dev/null
python3 "$here/compare.py" "$out/events.jsonl" "$out/run/operations.csv"
