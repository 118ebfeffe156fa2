"""`multiset_attributes` through the real client."""

from calls import raw


def test_multiset_attributes(client, home):
    raw(client, "multiset_attributes", data=b"{x=1;y=2}", path=f"{home}/@", input_format="yson")
    assert (client.get(f"{home}/@x"), client.get(f"{home}/@y")) == (1, 2)
