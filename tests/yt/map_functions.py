"""Functions that run in the jobs of test_map_functions.py.

A job imports the module of its function from source, so this module has no imports but the SDK, which the job has anyway.
"""

import yt.wrapper


def words(row):
    for word in row["text"].split():
        yield {"word": word, "id": row["id"]}


def evens_and_odds(row):
    yield yt.wrapper.create_table_switch(row["id"] % 2)
    yield row


def halves(row):
    """In the form `row_fields`."""
    yield {**row, "@table_index": row["id"] % 2}
    yield {"id": row["id"], "text": "goes to the first"}


def to_the_seventh(row):
    yield yt.wrapper.create_table_switch(7)
    yield row


@yt.wrapper.raw
def in_json(line):
    """`JsonFormat` of the SDK writes to the descriptors of the tables by itself, but of a function of lines."""
    if b'"id":1,' in line.replace(b" ", b""):
        yield b'{"$value": null, "$attributes": {"table_index": 1}}\n'
    yield line
