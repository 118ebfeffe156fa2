"""`get_supported_features` through the real client."""

from calls import formatted


def test_get_supported_features(client):
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    assert client.get_supported_features() == {
        "primitive_types": [*integers, "string", "double", "boolean", "any"],
        "compression_codecs": ["none"],
        "erasure_codecs": ["none"],
        "operation_statistics_descriptions": {},
        "query_memory_limit_in_tablet_nodes": False,
        "require_password_in_authentication_commands": False,
    }


def test_get_supported_features_the_answer_is_wrapped(client):
    assert formatted(client, "get_supported_features") == {"features": client.get_supported_features()}


def test_get_supported_features_primitive_types_are_those_of_schemas(client, home):
    for name in client.get_supported_features()["primitive_types"]:
        client.create("table", f"{home}/{name}", attributes={"schema": [{"name": "a", "type": name}]})
