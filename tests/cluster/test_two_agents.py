"""Two agents on one host."""

import subprocess

from harness import BINARY, cluster as make_cluster, free_port, wait_for


def agent(name, data):
    """A second agent, of a cluster whose server is away. Gives its exit code and what it said."""
    arguments = [BINARY, "node", "--server", f"127.0.0.1:{free_port()}", "--name", name, "--data", data,
                 "--resources", "cpu=1,memory=1GiB,user_slots=1", "--stop-jobs"]
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def test_s10_a_second_agent_of_the_same_name_harms_nothing(tmp_path):
    """S10: an agent with the name of another, by default that of the host, killed the other's jobs and removed its control
    groups before it asked its server, of whatever cluster. The first agent failed every start from then on."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        begun = cluster.shared / "begun"
        operation = cluster.start_vanilla(f"echo $$ >{begun}; exec sleep 1000", pool="p")
        wait_for(begun.exists, what="the job to begin")
        # Known to the server, too.
        cluster.wait_counters(operation, running=1)
        groups = cluster.job_cgroups()
        code, said = agent(cluster.nodes[0].name, tmp_path / "other")
        assert code != 0 and cluster.nodes[0].name in said and str(cluster.directory / "node-0") in said, said
        assert cluster.job_cgroups() == groups and len(groups) >= 1
        progress = cluster.counters(operation)
        assert (progress["running"], progress["aborted"]) == (1, 0), progress
        # The next life of the first one takes its job over.
        cluster.nodes[0].kill()
        cluster.nodes[0].start()
        cluster.wait_nodes()
        second = cluster.shared / "second"
        cluster.run_vanilla(f"touch {second}", pool="p")
        assert second.exists()
        progress = cluster.counters(operation)
        assert (progress["running"], progress["aborted"]) == (1, 0), progress
