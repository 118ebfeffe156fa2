"""`get_supported_features` through the real client."""

def test_get_supported_features(client):
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    assert client.get_supported_features() == {
        "primitive_types": [*integers, "string", "double", "boolean", "any"],
        "compression_codecs": ["none"],
        "erasure_codecs": ["none"],
        "operation_statistics_descriptions": {},
        "require_password_in_authentication_commands": False,
    }
