"""`parse_ypath` through the real client."""

from calls import formatted


def test_parse_ypath(client):
    parsed = formatted(client, "parse_ypath", path="//tmp/t{a}[#1:#2]")
    parsed = parsed["path"] if isinstance(parsed, dict) else parsed
    assert str(parsed) == "//tmp/t" and parsed.attributes["columns"] == ["a"]
