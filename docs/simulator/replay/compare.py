"""Finish times of operations in an event log and in its replay: compare.py EVENTS OPERATIONS."""

import csv
import datetime
import json
import statistics
import sys


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


events = [json.loads(line) for line in open(sys.argv[1])]
begin = min(seconds(event["time"]) for event in events)
started = {e["operation_id"]: seconds(e["start_time"]) for e in events if e["event"] == "operation_started"}
finished = {e["operation_id"]: seconds(e["time"]) for e in events if e["event"] == "operation_completed"}
replayed = {row["id"]: row for row in csv.DictReader(open(sys.argv[2]))}
assert finished and finished.keys() <= replayed.keys(), "an operation is missing in the replay"

print("operation                    submitted  recorded  replayed  difference")
differences = []
for operation in sorted(finished, key=started.get):
    row = replayed[operation]
    assert row["state"] == "completed", row
    # From the submission: stricter than times since the beginning of the log.
    recorded = finished[operation] - started[operation]
    found = (float(row["finish_ms"]) - float(row["at_ms"])) / 1000
    differences.append(abs(found / recorded - 1))
    at = started[operation] - begin
    print(f"{operation:28} {at:8.1f}s {recorded:8.2f}s {found:8.2f}s {found / recorded - 1:+10.1%}")
median = statistics.median(differences)
preempted = sum(e["event"] == "job_aborted" and e.get("reason") == "preemption" for e in events)
print(f"median difference {median:.1%}, largest {max(differences):.1%}; {preempted} jobs preempted in the log, "
      f"{sum(int(row['preempted_job_count']) for row in replayed.values())} in the replay")
sys.exit(median > 0.05)
