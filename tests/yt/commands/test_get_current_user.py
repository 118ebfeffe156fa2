"""`get_current_user` through the real client."""

import json
import urllib.error
import urllib.request

import pytest
import yt.wrapper
from calls import acting, formatted, fresh, known_by, plain, refused


def test_get_current_user(client):
    assert client.get_current_user()["user"] == "root"


def test_get_current_user_acting_as_another_without_authentication(cluster, client, user):
    assert acting(cluster, user).get_current_user() == {"user": user}
    assert json.loads(plain(cluster, "GET", "get_current_user", X_YT_Testing_User_Name=user)[2]) == {"user": user}


@pytest.fixture
def own(guarded):
    """The name and the token of a user."""
    name = fresh("user")
    guarded.client().create("user", attributes={"name": name})
    return name, guarded.client().issue_token(name)


def test_get_current_user_by_a_token(guarded, own):
    name, token = own
    assert known_by(guarded, token).get_current_user() == {"user": name}
    for scheme in ("OAuth", "oauth", "Bearer"):
        assert json.loads(plain(guarded, "GET", "get_current_user", Authorization=f"{scheme} {token}")[2]) == {"user": name}
    for wrong in ("", "OAuth", "OAuth ", f"Basic {token}", f"OAuth {token}x", token):
        status, _, error = plain(guarded, "GET", "get_current_user", Authorization=wrong)
        assert (status, json.loads(error)["code"]) == (401, 111), wrong
    with pytest.raises(urllib.error.HTTPError) as refused_without:
        urllib.request.urlopen(f"http://{guarded.address}/api/v4/get_current_user", timeout=180)
    assert refused_without.value.code == 401


def test_get_current_user_acting_as_another(guarded, own):
    name, token = own
    assert acting(guarded, name).get_current_user() == {"user": name}
    with refused(900, 'no such user'):
        formatted(acting(guarded, "nobody"), "get_current_user")
    pretender = known_by(guarded, token)
    pretender.config["impersonation_user"] = "root"
    with refused(900, f'"{name}" may not act as user "root"'):
        formatted(pretender, "get_current_user")
    # As oneself anybody may.
    pretender.config["impersonation_user"] = name
    assert formatted(pretender, "get_current_user") == {"user": name}
    guarded.client().add_member(name, "superusers")
    pretender.config["impersonation_user"] = "root"
    assert formatted(pretender, "get_current_user") == {"user": "root"}
    guarded.client().remove_member(name, "superusers")


def test_get_current_user_who_is_banned_or_gone(guarded, own):
    name, token = own
    root = guarded.client()
    root.set(f"//sys/users/{name}/@banned", True)
    for who in (known_by(guarded, token), acting(guarded, name)):
        with refused(903, f'"{name}" is banned'):
            formatted(who, "get_current_user")
    assert plain(guarded, "GET", "get_current_user", Authorization=f"OAuth {token}")[0] == 403
    root.set(f"//sys/users/{name}/@banned", False)
    assert formatted(known_by(guarded, token), "get_current_user") == {"user": name}
    root.remove(f"//sys/users/{name}")
    root.create("user", attributes={"name": name})
    with pytest.raises(yt.wrapper.YtTokenError):
        formatted(known_by(guarded, token), "get_current_user")
