"""Data directories of earlier releases: archives, questions to a server about its data, and comparison of answers.

A question is a read request of the API. `make_data.py` writes questions with their answers to `expected.json`, and
`test_data.py` asks a server of the day the same questions. The list of questions is part of the data of a release, so
a later `make_data.py` with other questions does not change what is asked of older data.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import tarfile
import tempfile
import urllib.error
import urllib.request

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
# Longer texts are kept as a digest.
LONGEST_TEXT = 4096


@contextlib.contextmanager
def alone(release):
    """Held while nodes of a release's data run.

    The nodes have the names that they had when the data was made, and their control groups are named after them.
    """
    with open(pathlib.Path(tempfile.gettempdir()) / f"millpond-{release}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def name_nodes(cluster, release):
    """Gives the nodes of a cluster that has not been started the names that do not depend on the run."""
    for number, node in enumerate(cluster.nodes):
        node.name = f"{release}-{number}"
        node.arguments[node.arguments.index("--name") + 1] = node.name


# --- archives


def pack(directory, archive):
    """Writes an archive whose bytes depend on the contents only: sorted names, no times of access or of packing."""
    def members(path):
        yield path
        if path.is_dir() and not path.is_symlink():
            for entry in sorted(path.iterdir()):
                yield from members(entry)
    with tarfile.open(archive, "w:xz", preset=9, format=tarfile.GNU_FORMAT) as tar:
        for path in members(directory):
            if path.is_socket() or path.name == "lock":
                continue
            info = tar.gettarinfo(path, arcname=str(path.relative_to(directory.parent)))
            info.uname = info.gname = ""
            info.mtime = int(info.mtime)
            if info.isfile():
                with open(path, "rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)


def unpack(archive, directory):
    """Unpacks with the owners and modes of the archive, as far as this user may set them."""
    with tarfile.open(archive) as tar:
        tar.extractall(directory, numeric_owner=True, filter="fully_trusted")


# --- questions


def question(what, command, /, asks="root", form="json", **parameters):
    """A question of the user `asks`. `what` names it in messages; `form` is `json` or `bytes`."""
    return {"what": what, "command": command, "asks": asks, "form": form, "parameters": parameters}


def ask(cluster, tokens, question):
    """The answer: `{"status", "json"}`, `{"status", "text"}`, or, of long texts, `{"status", "size", "sha256"}`."""
    command = question["command"]
    url = f"http://{cluster.address}{command if command.startswith('/') else f'/api/v4/{command}'}"
    request = urllib.request.Request(url, headers={"X-YT-Parameters": json.dumps(question["parameters"])})
    request.add_header("Authorization", f"OAuth {tokens[question['asks']]}")
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            status, body = reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return {"status": error.code, "json": {"code": json.loads(error.read())["code"]}}
    if question["form"] == "json":
        return {"status": status, "json": json.loads(body)}
    if len(body) > LONGEST_TEXT:
        return {"status": status, "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    return {"status": status, "text": body.decode("latin-1")}


# --- comparison

# In place of a value that goes on with time.
ANY = "$any"


def mark(first, second):
    """The answer `first` with `{"$any": VALUE}` for all that differs in `second`, the same question asked later."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {key: mark(value, second[key]) if key in second else {ANY: value} for key, value in first.items()}
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [mark(a, b) for a, b in zip(first, second, strict=True)]
    return first if first == second and type(first) is type(second) else {ANY: first}


def marked(expected, path=""):
    """Paths of all that may be any value."""
    if isinstance(expected, dict):
        if ANY in expected:
            yield path
            return
        for key, value in expected.items():
            yield from marked(value, f"{path}/{key}")
    elif isinstance(expected, list):
        for index, value in enumerate(expected):
            yield from marked(value, f"{path}/{index}")


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def differences(expected, found, path=""):
    """What is not as expected, a line each.

    Maps may have more keys than expected: a later version may know more of an object. Lists may not have more items.
    `{"$any": ...}` stands for any value, `{"$from": a, "$to": b}` for a number of this range, `{"$begins": list}` for a
    list that begins so, `{"$one_of": list}` for one of these values.
    """
    if isinstance(expected, dict):
        if ANY in expected:
            return
        if "$from" in expected:
            if not isinstance(found, int | float) or not expected["$from"] <= found <= expected["$to"]:
                yield f"{path}: expected {expected['$from']} to {expected['$to']}, found {short(found)}"
            return
        if "$one_of" in expected:
            if found not in expected["$one_of"]:
                yield f"{path}: expected one of {expected['$one_of']}, found {short(found)}"
            return
        if "$begins" in expected:
            wanted = expected["$begins"]
            if not isinstance(found, list):
                yield f"{path}: expected a list, found {short(found)}"
                return
            yield from differences(wanted, found[:len(wanted)], path)
            return
        if not isinstance(found, dict):
            yield f"{path}: expected a map, found {short(found)}"
            return
        for key, value in expected.items():
            if key not in found:
                yield f"{path}/{key}: expected {short(value)}, found nothing"
            else:
                yield from differences(value, found[key], f"{path}/{key}")
        return
    if isinstance(expected, list):
        if not isinstance(found, list):
            yield f"{path}: expected a list, found {short(found)}"
        elif len(expected) != len(found):
            yield f"{path}: expected {len(expected)} items, found {len(found)}: expected {short(expected)}, found {short(found)}"
        else:
            for index, (a, b) in enumerate(zip(expected, found, strict=True)):
                yield from differences(a, b, f"{path}/{index}")
        return
    if type(expected) is not type(found) or expected != found:
        yield f"{path}: expected {short(expected)}, found {short(found)}"


def compare(cluster, tokens, questions):
    """Asks all questions; the list of differences, each with the name of its question."""
    found = []
    for item in questions:
        answer = ask(cluster, tokens, item)
        found += [f"{item['what']}{line}" for line in differences(item["answer"], answer)]
    return found
