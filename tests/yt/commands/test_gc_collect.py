"""`gc_collect` through the real client. What it does when something waits: tests/faults/test_store_parts.py."""

from calls import raw, refused


def test_nothing_waits_for_a_confirmation(client):
    with refused(1, "No garbage collection waits"):
        raw(client, "gc_collect")
