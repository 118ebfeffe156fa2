"""`concatenate` through the real client. (Of files, in depth: test_uploads.py.)"""

import pytest
from calls import formatted, fresh, inside, known_by, told


def test_concatenate(client, home):
    for name in "cd":
        client.write_file(f"{home}/{name}", name.encode())
    client.concatenate([f"{home}/c", f"{home}/d"], f"{home}/files")
    assert client.read_file(f"{home}/files").read() == b"cd"
    for name in "ab":
        client.write_table(f"{home}/{name}", [{"from": name}])
    client.create("table", f"{home}/all")
    client.concatenate([f"{home}/a", f"{home}/b"], f"{home}/all")
    assert list(client.read_table(f"{home}/all")) == [{"from": "a"}, {"from": "b"}]


@pytest.fixture
def tables(client, home):
    """Two with rows, and an empty one."""
    client.write_table(f"{home}/a", [{"n": 2}, {"n": 3}])
    client.write_table(f"{home}/b", [{"n": 1}])
    client.create("table", f"{home}/all")
    return home


def numbers(client, path):
    return [row["n"] for row in client.read_table(path)]


def test_concatenate_over_and_behind(client, tables):
    assert formatted(client, "concatenate", source_paths=[f"{tables}/a", f"{tables}/b"], destination_path=f"{tables}/all") == {}
    assert numbers(client, f"{tables}/all") == [2, 3, 1]
    client.concatenate([f"{tables}/b"], f"<append=%true>{tables}/all")
    client.concatenate([f"{tables}/a", f"{tables}/a"], f"<append=%true>{tables}/all")
    assert numbers(client, f"{tables}/all") == [2, 3, 1, 1, 2, 3, 2, 3]
    client.concatenate([f"{tables}/b"], f"<append=%false>{tables}/all")
    assert numbers(client, f"{tables}/all") == [1] and numbers(client, f"{tables}/a") == [2, 3]
    id = client.get(f"{tables}/all/@id")
    client.concatenate([f"{tables}/all", f"{tables}/b"], f"{tables}/all")
    assert numbers(client, f"{tables}/all") == [1, 1] and client.get(f"{tables}/all/@id") == id


def test_concatenate_nothing_if_one_is_missing(client, tables):
    client.write_file(f"{tables}/f", b"")
    client.write_table(f"{tables}/all", [{"n": 0}])
    for source, code, words in ((f"{tables}/none", 500, ['"none"']), (f"{tables}/f", 1, ["of type file", "table"]),
                                (f"{tables}/a[#0:#1]", 1, ["only whole tables"]), (f"{tables}/a{{n}}", 1, ["only whole tables"]),
                                (tables, 1, ["map_node"]), ("//sys/users/root", 1, ["user"])):
        for append in ("", "<append=%true>"):
            with told(code, *words):
                client.concatenate([f"{tables}/a", source], f"{append}{tables}/all")
    assert numbers(client, f"{tables}/all") == [0]


def test_concatenate_the_destination_must_be_there(client, tables):
    """The client makes it beforehand."""
    with told(500, '"none"'):
        formatted(client, "concatenate", source_paths=[f"{tables}/a"], destination_path=f"{tables}/none")
    assert client.list(tables) == ["a", "all", "b"]


def test_concatenate_links(client, tables):
    client.link(f"{tables}/a", f"{tables}/la")
    client.link(f"{tables}/all", f"{tables}/lall")
    formatted(client, "concatenate", source_paths=[f"{tables}/la"], destination_path=f"{tables}/lall")
    assert numbers(client, f"{tables}/all") == [2, 3] and client.get(f"{tables}/lall&/@type") == "link"


def test_concatenate_into_a_sorted_table(client, tables):
    schema = [{"name": "n", "type": "int64", "sort_order": "ascending"}]
    for name in "cde":
        client.create("table", f"{tables}/{name}", attributes={"schema": schema})
    client.write_table(f"{tables}/c", [{"n": 2}, {"n": 3}])
    client.write_table(f"{tables}/d", [{"n": 1}])
    client.concatenate([f"{tables}/d", f"{tables}/c"], f"{tables}/e")
    assert numbers(client, f"{tables}/e") == [1, 2, 3] and client.get(f"{tables}/e/@sorted")
    with told(1):
        client.concatenate([f"{tables}/d"], f"<append=%true>{tables}/e")
    assert numbers(client, f"{tables}/e") == [1, 2, 3]


@pytest.mark.parametrize("parameters, words", [
    ({"source_paths": ["//tmp/x"]}, ['"destination_path"', "Missing"]), ({"destination_path": "//tmp/x"}, ['"source_paths"', "Missing"]),
    ({"source_paths": "//tmp/x", "destination_path": "//tmp/x"}, ['"source_paths"', "list of paths"]),
    ({"source_paths": [5], "destination_path": "//tmp/x"}, ['"source_paths"', "string", "int64"]),
    ({"source_paths": ["x"], "destination_path": "//tmp/x"}, ['"source_paths"', "`/` or `#`"])], ids=range(5))
def test_concatenate_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "concatenate", **parameters)


def test_concatenate_append_is_a_boolean(client, tables):
    with told(1, '"append"', "boolean", "int64"):
        client.concatenate([f"{tables}/a"], f"<append=1>{tables}/all")


def test_concatenate_in_a_transaction(client, tables):
    id, within = inside(client)
    within.write_table(f"{tables}/b", [{"n": 7}])
    within.concatenate([f"{tables}/a", f"{tables}/b"], f"{tables}/all")
    assert numbers(within, f"{tables}/all") == [2, 3, 7] and numbers(client, f"{tables}/all") == []
    with told(402, id):
        client.concatenate([f"{tables}/a"], f"{tables}/all")
    client.commit_transaction(id)
    assert numbers(client, f"{tables}/all") == [2, 3, 7]


def test_concatenate_repeated_is_done_once(client, tables):
    for retry in (False, True, True):
        formatted(client, "concatenate", source_paths=[f"{tables}/b"], destination_path=f"<append=%true>{tables}/all",
                  mutation_id="7-7-7-a1", retry=retry)
    assert numbers(client, f"{tables}/all") == [1]


def test_concatenate_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    for table in ("open", "secret", "kept"):
        root.write_table(f"//tmp/{name}-{table}", [{"n": 1}])
    root.set(f"//tmp/{name}-secret/@acl", [{"action": "deny", "subjects": [name], "permissions": ["read"]}])
    root.set(f"//tmp/{name}-kept/@acl", [{"action": "deny", "subjects": [name], "permissions": ["write"]}])
    for source, destination, permission in (("secret", "open", "read"), ("open", "kept", "write")):
        with told(901, name, permission):
            other.concatenate([f"//tmp/{name}-{source}"], f"<append=%true>//tmp/{name}-{destination}")
    assert root.row_count(f"//tmp/{name}-open") == root.row_count(f"//tmp/{name}-kept") == 1
