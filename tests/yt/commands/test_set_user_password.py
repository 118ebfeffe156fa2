"""`set_user_password` through the real client."""

import json
import urllib.error
import urllib.request

from calls import known_by


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
