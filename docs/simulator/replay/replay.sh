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
rm -rf "$out"/{data,snapshot,run,up.log,events.jsonl,work.jsonl,imported.json,mapping.json}

"$millpond" up --data "$out/data" --listen 127.0.0.1:0 --no-auth --nodes 3 \
    --node-resources cpu=4,memory=8GiB,user_slots=16 > "$out/up.log" 2>&1 &
up=$!
trap 'kill -TERM $up 2>/dev/null; wait $up || true' EXIT
until MILLPOND_PROXY=$(sed -nE '/127\.0\.0\.1:[0-9]/{s/.*(127\.0\.0\.1:[0-9]+).*/\1/p;q}' "$out/up.log") && [ -n "$MILLPOND_PROXY" ]; do
    kill -0 $up
    sleep 0.2
done
export MILLPOND_PROXY
until [ "$("$millpond" node list --json 2>/dev/null | grep -c '"state": *"online"' )" -ge 3 ]; do
    kill -0 $up
    sleep 0.2
done

# Odd numbers: with round ones operations are equally far from their shares, patience ends (30 s) at the moment of a
# heartbeat (5 s), and so does the time in which a node does not look for somebody to preempt (5 s): then the last digit
# or the last millisecond decides.
"$millpond" pool create prod --guarantee cpu=5.3 > /dev/null
"$millpond" pool create dev --weight 0.9 > /dev/null
"$millpond" pool create batch --weight 2.3 > /dev/null
"$millpond" set //sys/pool_trees/physical/@config '{fair_share_starvation_timeout=12500;preemptive_scheduling_backoff=4200}' > /dev/null
# Cluster and pools as they are now.
"$millpond" sim snapshot --out "$out/snapshot" > /dev/null

# start POOL CORES JOBS SHORTEST SPREAD: jobs of SHORTEST and up to SPREAD seconds more. With whole seconds, jobs would
# end at the moment when others end and operations come; who is first then, is the machine's whim.
start() {
    "$millpond" run --quiet --pool "$1" --cpu "$2" --memory 128MiB --jobs "$3" -- \
        bash -c "sleep \$(($4 + YT_JOB_COOKIE * 7 % $5)).\$((10 + YT_JOB_COOKIE * 37 % 89))" >> "$out/started"
}
: > "$out/started"
# Two heartbeats: a node looks for somebody to preempt at heartbeats, at most every 5 s, and begins anew in a scenario.
sleep 11
start dev 1 30 8 9
sleep 6.43
start batch 2 12 10 11
sleep 9.38
start prod 1 16 12 8
start dev 0.5 20 5 4
sleep 14.67
start prod 2 6 15 10
start batch 1 18 6 13
sleep 20.19
start dev 1 8 20 5
while read -r id; do
    until grep -qE '"state": *"(completed|failed|aborted)"' <<< "$("$millpond" op get "$id" --json)"; do
        sleep 1
    done
done < "$out/started"

"$millpond" events --from 1 --limit 100000 --json > "$out/events.jsonl"
# The scenario begins when the snapshot was made.
grep -oE '"start_time": *"[^"]+"' "$out/snapshot/scenario.json" | sed 's/.*/{&}/' > "$out/mapping.json"
"$millpond" sim import event-log "$out/events.jsonl" --mapping "$out/mapping.json" --out "$out/work.jsonl" > "$out/imported.json"
"$millpond" --quiet sim run "$out/snapshot/scenario.json" --set "/workload=[\"$out/work.jsonl\"]" --out "$out/run" > /dev/null
python3 "$here/compare.py" "$out/events.jsonl" "$out/run/operations.csv"
