"""`set_user_password` through the real client."""

import json
import urllib.error
import urllib.request

from calls import acting, denied, formatted, fresh, known_by, refused


def test_set_user_password(guarded):
    root = known_by(guarded, guarded.token)
    root.create("user", attributes={"name": "bob"})

    def signed_in(password):
        who = json.dumps({"user": "bob", "password": password}).encode()
        try:
            with urllib.request.urlopen(f"http://{guarded.address}/login", data=who) as reply:
                return json.loads(reply.read())["login"]
        except urllib.error.HTTPError as error:
            return error.code
    assert signed_in("secret") == 401
    root.set_user_password("bob", "secret")
    assert (signed_in("secret"), signed_in("Secret")) == ("bob", 401)


def test_set_user_password_parameters(client, user):
    digits = "0" * 64
    assert formatted(client, "set_user_password", user=user, new_password_sha256=digits) == {}
    for parameters, code, words in (
            ({"user": user}, 1, '"new_password_sha256"'), ({"new_password_sha256": digits}, 1, '"user"'),
            ({"user": user, "new_password_sha256": "secret"}, 1, '"new_password_sha256" must be 64 hexadecimal digits'),
            ({"user": user, "new_password_sha256": digits[1:] + "g"}, 1, '"new_password_sha256"'),
            ({"user": user, "new_password_sha256": 5}, 1, '"new_password_sha256" must be string'),
            ({"user": "nobody", "new_password_sha256": digits}, 500, 'No such user "nobody"'),
            ({"user": "admins", "new_password_sha256": digits}, 500, 'No such user "admins"')):
        with refused(code, words):
            formatted(client, "set_user_password", **parameters)


def test_set_user_password_who_may(guarded):
    root = guarded.client()
    names = [fresh("user") for _ in range(2)]
    for name in names:
        root.create("user", attributes={"name": name})
    own = acting(guarded, names[0])
    own.set_user_password(names[0], "secret")
    for name in (names[1], "root", "nobody"):
        with denied(own, "administer"):
            own.set_user_password(name, "secret")
    with denied(own, "read"):
        own.get(f"//sys/tokens/passwords/{names[0]}")
    assert not root.exists(f"//sys/tokens/passwords/{names[1]}")
