"""Names of files in a sandbox: what they may be, and that no name leads a node out of the sandbox."""

import pytest
from harness import ServerError, cluster as make_cluster
from test_jobs import output, upload

TOO_LONG = "x" * 256
DEEP = "d/" * 1536 + "f"

GOOD = b"#!/bin/sh\necho good\n"
EVIL = b"#!/bin/sh\necho evil\n"


def named(name, path, **attributes):
    options = "".join(f"{key}={'%true' if value is True else value};" for key, value in attributes.items())
    return f'<file_name="{name}";{options}>{path}'


@pytest.mark.parametrize("second", ["d//f", "d/./f", "./d/f", "d/f", "d/f/"])
def test_s1_a_second_spelling_cannot_reach_the_cache(cluster, pool, second):
    """S1: the second file was written through the link that the first one is, into the node's cache: the next user's job
    ran it."""
    upload(cluster, "//tmp/names/tool", GOOD)
    upload(cluster, "//tmp/names/evil", EVIL)
    tool = named("d/f", "//tmp/names/tool", executable=True)
    assert output(cluster, pool, "d/f", file_paths=[tool]) == "good\n"
    with pytest.raises(ServerError) as refused:
        evil = named(second, "//tmp/names/evil", executable=True, bypass_artifact_cache=True)
        cluster.run_vanilla("d/f", pool=pool, file_paths=[tool, evil])
    assert "file_paths" in refused.value.text() or "file_name" in refused.value.text()
    assert output(cluster, pool, "d/f", file_paths=[tool]) == "good\n"


def test_s1_a_changed_cache_is_fetched_again():
    """S1: whoever got at the cache, the next job gets the file as the server has it, also after a restart of the agent."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/tool", GOOD)
        tool = named("f", "//tmp/tool", executable=True)
        assert output(cluster, "p", "./f", file_paths=[tool]) == "good\n"
        cached, = [path for path in cluster.directory.glob("**/cache/*-x") if path.read_bytes() == GOOD]
        for restart in (False, True):
            cached.chmod(0o755)
            cached.write_bytes(EVIL)
            if restart:
                cluster.nodes[0].terminate()
                cluster.nodes[0].start()
                cluster.wait_nodes()
            assert output(cluster, "p", "./f", file_paths=[tool]) == "good\n", restart
            assert cached.read_bytes() == GOOD


@pytest.mark.parametrize(("names", "reason"), [
    (["./f"], "plain form"), (["f/"], "plain form"), ([TOO_LONG], "at most 255"), ([DEEP], "at most 3072"),
    (["f", "f/g"], "cannot be the directory"), (["f", "f"], "is there twice"), (["../f"], '".."'), (["/f"], "relative"),
])
def test_s4_names_that_no_node_can_make_are_refused(cluster, pool, names, reason):
    """S4: they were accepted, and then aborted and tried again without end."""
    upload(cluster, "//tmp/names/data", b"x")
    with pytest.raises(ServerError, match="file_paths") as refused:
        cluster.start_vanilla("true", pool=pool, file_paths=[named(name, "//tmp/names/data") for name in names])
    assert reason in refused.value.text(), refused.value.text()


def test_s4_a_memory_file_system_in_the_place_of_a_file(cluster, pool):
    """S4: it was accepted, and every run was aborted."""
    upload(cluster, "//tmp/names/data", b"x")
    with pytest.raises(ServerError) as refused:
        cluster.run_vanilla("true", pool=pool, file_paths=[named("v", "//tmp/names/data")], memory_limit=256 << 20,
                            tmpfs_volumes=[{"path": "v/inside", "size": 1 << 20}])
    assert "cannot be the directory" in refused.value.text()
    with pytest.raises(ServerError, match="at most 255"):
        cluster.start_vanilla("true", pool=pool, tmpfs_path=TOO_LONG, tmpfs_size=1 << 20)


def test_s12_copied_files_in_a_slot_that_never_held_links():
    """S12: each run was aborted for a directory that only links need, a hundred times a second, until the node switched
    itself off."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/data", b"copied\n")
        operation = cluster.run_vanilla("cat data", pool="p", file_paths=["//tmp/data"], copy_files=True)
        assert cluster.stderr(operation, cluster.jobs(operation)[0]["id"]) == b"copied\n"
        assert cluster.counters(operation)["aborted"] == 0
