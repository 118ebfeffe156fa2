"""What the tests of commands have in common: calls for which the client has no function, and names that are new."""

import contextlib
import hashlib
import itertools
import json

import pytest
import yt.wrapper
import yt.yson
from yt.wrapper.driver import make_formatted_request, make_request

_numbers = itertools.count()
LATE = 600_000  # milliseconds: a transaction of a test does not end because the machine is slow


def fresh(what):
    """A name that no other test has."""
    return f"{what}-{next(_numbers)}"


def raw(client, command, data=None, **parameters):
    """A command for which the client has no function: as `yt execute` calls it."""
    answer = make_request(command, parameters, data=data, client=client)
    return yt.yson.loads(answer) if answer else None


def formatted(client, command, **parameters):
    return make_formatted_request(command, parameters, format=None, client=client)


@contextlib.contextmanager
def refused(code, match=None):
    """What is inside is refused with this code, somewhere in the tree of the error."""
    with pytest.raises(yt.wrapper.YtResponseError, match=match) as error:
        yield error
    assert error.value.contains_code(code), error.value


def known_by(cluster, token):
    return yt.wrapper.YtClient(proxy=cluster.address, token=token, config={"proxy": {"enable_proxy_discovery": False}})


def group(client, user):
    """A new one with this member."""
    name = fresh("group")
    client.create("group", attributes={"name": name})
    client.add_member(user, name)
    return name


def digest(token):
    return hashlib.sha256(str(token).encode()).hexdigest()


def tokens(client, user):
    listed = client.list_user_tokens(user)
    # As it came: the client does not ask for a format and hands the bytes on.
    return json.loads(listed) if isinstance(listed, (bytes, str)) else list(listed)


def cached(client, home):
    """The md5 of a file that was put into a cache, and where it is."""
    client.write_file(f"{home}/f", home.encode(), compute_md5=True)
    md5 = client.get(f"{home}/f/@md5")
    client.create("map_node", f"{home}/cache")
    return md5, client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/cache")


def without_shells(refused):
    if "isolation" in str(refused):
        pytest.skip("jobs of this host have no shells")
    raise refused
