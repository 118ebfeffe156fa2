"""Who waited longest? A Python function over a table of real jobs, step by step as in a notebook.

    pip install ytsaurus-client ytsaurus-yson
    YT_PROXY=http://127.0.0.1:8000 python3 examples/map/slowdown.py

The function below runs in jobs of the cluster: the SDK pickles it, uploads it with its modules (once: they stay in
the file cache), and the job's rows come to it one by one. Jobs need a python3 of the version that runs this script;
MAP_PYTHON says where, if it is not /usr/bin/python3.
"""

import collections
import os
import pathlib

import yt.wrapper


# %% What is to be known of each job
def slowdown(row):
    """How many times longer it took for having to wait; short jobs count as ten seconds."""
    ran = max(row["ran"], 10)
    yield {"user": row["user"], "core_hours": row["cores"] * row["ran"] / 3600, "slowdown": (row["waited"] + ran) / ran}


# Jobs import this file to find the function: what follows is for who runs it.
if __name__ == "__main__":
    # %% The cluster
    client = yt.wrapper.YtClient(proxy=os.environ["YT_PROXY"], token=os.environ.get("YT_TOKEN", ""))
    client.config["proxy"]["enable_proxy_discovery"] = False
    client.config["pickling"]["python_binary"] = os.environ.get("MAP_PYTHON", "/usr/bin/python3")
    folder = client.find_free_subpath("//tmp/slowdown")
    client.create("map_node", folder)

    # %% The data: six hours of a real grid, as a log in the Standard Workload Format
    log = pathlib.Path(__file__).parents[1] / "demo" / "metacentrum-window.swf"
    names = ["job", "submitted", "waited", "ran", "cores"]
    lines = [line.split() for line in log.read_text().splitlines() if line and not line.startswith(";")]
    client.write_table(f"{folder}/jobs", [dict(zip(names, map(float, line)), user=line[11]) for line in lines])

    # %% The map
    client.run_map(slowdown, f"{folder}/jobs", f"{folder}/slowdowns",
                   spec={"job_count": 2, "mapper": {"cpu_limit": 0.5, "memory_limit": 256 << 20}})

    # %% The answer
    users = collections.defaultdict(list)
    for row in client.read_table(f"{folder}/slowdowns"):
        users[row["user"]].append(row)
    print(f"{len(lines)} jobs of {len(users)} users")
    print("user    jobs  core hours  mean slowdown")
    for user, rows in sorted(users.items(), key=lambda item: -sum(row["core_hours"] for row in item[1]))[:10]:
        mean = sum(row["slowdown"] for row in rows) / len(rows)
        print(f"{user:6}  {len(rows):4}  {sum(row['core_hours'] for row in rows):10.1f}  {mean:13.2f}")
    client.remove(folder, recursive=True)
