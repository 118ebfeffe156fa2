"""Every parser of bytes that come from outside of the process has a fuzz target (fuzz/README.md). A file with a new parser fails
here until it is named with its target, or with the reason why it needs none."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FUZZ = ROOT / "fuzz"
# Functions that are called like parsers, also private ones.
FUNCTION = re.compile(r"\bfn (\w+)\s*(?:<[^{;]*?>)?\(")
NAME = re.compile(r"(?:parse|decode|read|unpack|restore|open|load|from)(?:_\w+|d)?|\w+_from_\w+")
# Whose parameters are bytes, text, values that were made of bytes, or files.
INPUT = re.compile(r"\[u8\]|: &(?:'\w+ )?str\b|\bValue\b|Vec<u8>|Unpacker|\bState<|: &(?:'\w+ )?Path\b|: File\b|Read\b")
IMPLEMENTATION = re.compile(r"impl (?:std::str::)?FromStr for|impl TryFrom<pb::")


def parameters(text, begin):
    """From the parenthesis that opens at `begin` to the one that closes it."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin:at + 1]
    return ""


def parsers(text):
    """Names of what looks like a parser."""
    text = text.split("#[cfg(test)]")[0]
    found = [m[1] for m in FUNCTION.finditer(text) if NAME.fullmatch(m[1]) and INPUT.search(parameters(text, m.end() - 1))]
    return found + IMPLEMENTATION.findall(text)


def test_private_parsers_are_seen():
    """The list is of no use if a parser is not recognised."""
    for text in ("pub fn parse(text: &str) -> X {", "fn decode_row<'a>(row: &'a [u8]) {", "pub(crate) fn read(f: &Path)", "const fn unpack(bytes: &[u8])",
                 "pub(super) fn restore_node(&mut self, key: &[u8], value: &Value)", "fn open(&self, record: &[u8], sealed: &[u8])",
                 "fn key_from_hex(text: &str)", "fn read<K: Ord>(\n    value: &Value,\n)", "impl FromStr for X", "impl TryFrom<pb::X> for X"):
        assert parsers(text), text
    for text in ("fn parser(text: &str)", "fn read(&mut self)", "fn opened(bytes: u8)", "#[cfg(test)]\nfn parse(text: &str)"):
        assert not parsers(text), text



# File below crates/, and the fuzz target that calls it.
TARGETS = {
    "api/src/commands/params.rs": "request",
    "api/src/transport/command.rs": "request",
    "api/src/transport/formats.rs": "request",
    "api/src/transport/headers.rs": "request",
    "calc/src/fair_share/case.rs": "fair_share",
    "cli/src/units/parse.rs": "words",
    "controller/src/copies.rs": "recover",
    "controller/src/durations.rs": "recover",
    "controller/src/open.rs": "recover",
    "controller/src/operation/durable.rs": "recover",
    "controller/src/options.rs": "options",
    "controller/src/record.rs": "stored",
    "controller/src/spec/files.rs": "spec",
    "controller/src/spec/mod.rs": "spec",
    "controller/src/spec/scheduling.rs": "spec",
    "controller/src/spec/script.rs": "spec",
    "controller/src/spec/task.rs": "spec",
    "controller/src/statistics/aggregate.rs": "recover",
    "controller/src/statistics/samples.rs": "stored",
    "controller/src/units.rs": "recover",
    "cypress/src/acl.rs": "options",
    "cypress/src/transactions/record.rs": "recover",
    "demo/src/swf.rs": "words",
    "jobproxy/src/codec.rs": "proxy",
    "jobproxy/src/record.rs": "stored",
    "kernel/src/command.rs": "words",
    "kernel/src/events/outbox.rs": "recover",
    "kernel/src/garbage.rs": "recover",
    "kernel/src/id_times.rs": "recover",
    "kernel/src/leases.rs": "recover",
    "kernel/src/mutations.rs": "recover",
    "kernel/src/node_identities.rs": "recover",
    "kernel/src/nodes.rs": "recover",
    "kernel/src/owed.rs": "recover",
    "kernel/src/pools/records.rs": "recover",
    "kernel/src/preemption.rs": "recover",
    "kernel/src/records.rs": "recover",
    "kernel/src/recover/mod.rs": "recover",
    "kernel/src/tree.rs": "recover",
    "kernel/src/uids.rs": "recover",
    "kernel/src/volumes.rs": "recover",
    "node/src/identity.rs": "files",
    "node/src/isolation.rs": "words",
    "node/src/real/layers.rs": "layer",
    "reserve/src/memory_digest/stored.rs": "learned",
    "scheduler/src/config/options.rs": "options",
    "scheduler/src/config/pool.rs": "options",
    "scheduler/src/config/scheduler.rs": "options",
    "scheduler/src/config/tree.rs": "options",
    "scheduler/src/formula.rs": "words",
    "scheduler/src/options.rs": "options",
    "server/src/configured_tokens.rs": "files",
    "server/src/event_log/index.rs": "files",
    "server/src/node_authority.rs": "files",
    "server/src/vaults/keys.rs": "files",
    "server/src/vaults/seal.rs": "files",
    "tables/src/chunk.rs": "stored",
    "tables/src/columns.rs": "stored",
    "tables/src/print.rs": "options",
    "tables/src/row.rs": "tables",
    "tables/src/schema.rs": "options",
    "tables/src/writer.rs": "stored",
    "vocab/src/failure.rs": "stored",
    "vocab/src/id.rs": "words",
    "vocab/src/join_token.rs": "join",
    "vocab/src/time.rs": "words",
    "vocab/src/uids.rs": "words",
    "wire/src/proto/failure.rs": "wire",
    "wire/src/proto/job.rs": "wire",
    "wire/src/proto/message.rs": "wire",
    "wire/src/proto/tables.rs": "wire",
    "yson/src/format.rs": "options",
    "yson/src/parse.rs": "yson",
    "yson/src/schemaful_dsv.rs": "tables",
    "yson/src/ypath/mod.rs": "ypath",
    "yson/src/ypath/parse.rs": "ypath",
    # Parsers whose functions have other names.
    "api/src/transport/query.rs": "request",
    "api/src/transport/encoding.rs": "request",
    "jobproxy/src/custom.rs": "proxy",
    "node/src/real/layers/tree.rs": "layer",
    "tables/src/intake.rs": "tables",
    "tables/src/select.rs": "rich_path",
    "vocab/src/sandbox_path.rs": "words",
    "yson/src/dsv.rs": "dsv",
    "yson/src/json/read.rs": "json",
}

ONE_WORD = "one word is looked up in a table"
OWN_RECORD = "a field of a record that this server has written, read as a value that is parsed already"
FOR_ITSELF = "a file or an argument of the person who runs the program, for that program alone"
OF_KERNEL = "a text of the kernel of this host"
OF_SERVER = "an answer of the server to the person who asked it"
PARSED = "a value that a parser of the list has made"
NO_PARSER = "the name of a function that opens or passes on, and looks at no byte"
# The simulator reads scenarios, workloads and results of the person who runs it.
NO_TARGET_BELOW = ("sim/src/",)
NO_TARGET = {
    "api/src/commands/mod.rs": NO_PARSER,
    "api/src/transport/in_flight.rs": NO_PARSER,
    "api/src/transport/session.rs": "one JSON object of the page with three strings, by serde",
    "api/src/transport/stream.rs": "numbers between points, with `split` and `parse`",
    "api/src/transport/tls.rs": FOR_ITSELF,
    "cage/src/group.rs": OF_KERNEL,
    "cage/src/mounts.rs": OF_KERNEL,
    "cage/src/process.rs": OF_KERNEL,
    "cage/src/quota.rs": NO_PARSER,
    "calc/src/cpu_monitor.rs": FOR_ITSELF,
    "calc/src/memory_digest.rs": FOR_ITSELF,
    "calc/src/read/mod.rs": FOR_ITSELF,
    "cli/src/args/nodes.rs": FOR_ITSELF,
    "cli/src/args/processes.rs": FOR_ITSELF,
    "cli/src/args/sim.rs": FOR_ITSELF,
    "client/src/files.rs": NO_PARSER,
    "client/src/reply.rs": OF_SERVER,
    "client/src/request.rs": NO_PARSER,
    "cypress/src/failures.rs": NO_PARSER,
    "datadir/src/secret.rs": NO_PARSER,
    "demo/src/watch.rs": OF_SERVER,
    "history/src/chunk.rs": "series in memory that this process has packed",
    "history/src/lib.rs": NO_PARSER,
    "history/src/lives.rs": NO_PARSER,
    "jobproxy/src/proxy/disk/kept.rs": NO_PARSER,
    "jobproxy/src/proxy/feed.rs": NO_PARSER,
    "jobproxy/src/proxy/harvest.rs": NO_PARSER,
    "jobproxy/src/proxy/shell.rs": NO_PARSER,
    "jobproxy/src/stderr.rs": NO_PARSER,
    "kernel/src/access/lists.rs": PARSED,
    "kernel/src/alerts.rs": PARSED,
    "kernel/src/file_cache.rs": NO_PARSER,
    "kernel/src/history_chart.rs": NO_PARSER,
    "kernel/src/parameters.rs": PARSED,
    "kernel/src/shells.rs": NO_PARSER,
    "kernel/src/words.rs": PARSED,
    "millpond/src/config.rs": FOR_ITSELF,
    "millpond/src/machine.rs": OF_KERNEL,
    "node/src/real/beneath.rs": NO_PARSER,
    "node/src/real/cache.rs": "names of files that the agent has made in its own directory",
    "node/src/real/layers/squashfs.rs": "the program unsquashfs of the host parses, as another user with limits",
    "node/src/real/confirmed.rs": "a number and a word of a file that the agent has written",
    "node/src/real/lock.rs": NO_PARSER,
    "node/src/real/recovery.rs": NO_PARSER,
    "node/src/real/records.rs": "opens a file; its bytes are a message of `wire`",
    "node/src/listener.rs": OF_KERNEL,
    "node/src/real/users.rs": NO_PARSER,
    "node/src/real/users/claim.rs": "numbers of a file that the agent has written below /run",
    "reserve/src/options.rs": PARSED,
    "server/src/event_log/files.rs": NO_PARSER,
    "server/src/room.rs": NO_PARSER,
    "server/src/secret_file.rs": NO_PARSER,
    "server/src/shells.rs": NO_PARSER,
    "store/src/disk/identity.rs": "one id, parsed by `vocab/src/id.rs`",
    "store/src/disk/overlay.rs": NO_PARSER,
    "store/src/disk/redb_store.rs": "redb parses its own file",
    "cage/src/environment.rs": ONE_WORD,
    "cypress/src/transactions/locks.rs": ONE_WORD,
    "cypress/src/types.rs": ONE_WORD,
    "node/src/config.rs": ONE_WORD,
    "scheduler/src/reasons.rs": ONE_WORD,
    "vocab/src/resources.rs": ONE_WORD,
    "vocab/src/states.rs": ONE_WORD,
    "cypress/src/record.rs": OWN_RECORD,
    "kernel/src/job_archive.rs": OWN_RECORD,
    "kernel/src/operations/tables.rs": OWN_RECORD,
    "kernel/src/summary.rs": OWN_RECORD,
    "scheduler/src/stored_preemption.rs": OWN_RECORD,
    "server/src/job_rows.rs": "fields of an answer of the kernel in the same process",
}


def test_every_parser_is_listed():
    files = {str(path.relative_to(ROOT / "crates")): path.read_text() for path in ROOT.glob("crates/*/src/**/*.rs")}
    found = {name for name, text in files.items() if parsers(text) and "/tests" not in name and not name.startswith(NO_TARGET_BELOW)}
    known = {*TARGETS, *NO_TARGET}
    assert found - known == set(), "parsers without a fuzz target: name it in TARGETS, or the reason in NO_TARGET"
    assert known - set(files) == set(), "these files are gone"


@pytest.mark.parametrize("target", sorted({*TARGETS.values()}))
def test_the_target_is_there(target):
    """Its program, seeds to start from, and a row in the table."""
    assert f'name = "{target}"\npath = "fuzz_targets/{target}.rs"' in (FUZZ / "Cargo.toml").read_text()
    assert (FUZZ / f"fuzz_targets/{target}.rs").is_file()
    assert any((FUZZ / "seeds" / target).iterdir())
    assert re.search(rf"^\|.*`{target}`", (FUZZ / "README.md").read_text(), re.MULTILINE)


def test_all_targets_have_seeds():
    names = re.findall(r'^name = "(\w+)"$', (FUZZ / "Cargo.toml").read_text(), re.MULTILINE)
    assert len(names) > 10 and sorted(names) == sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
    assert sorted(names) == sorted(path.name for path in (FUZZ / "seeds").iterdir())
