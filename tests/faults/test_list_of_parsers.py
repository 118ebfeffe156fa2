"""Every parser of bytes that come from outside of the process has a fuzz target (fuzz/README.md). A file with a new parser fails
here until it is named with its target, or with the reason why it needs none."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FUZZ = ROOT / "fuzz"
# Functions that are called like parsers.
PARSER = re.compile(r"pub (?:const )?fn (?:parse\w*|decode\w*|from_value|from_stored)\b|impl (?:std::str::)?FromStr for|impl TryFrom<pb::")

# File below crates/, and the fuzz target that calls it.
TARGETS = {
    "api/src/commands/params.rs": "request",
    "calc/src/fair_share/case.rs": "fair_share",
    "cli/src/units/parse.rs": "words",
    "controller/src/options.rs": "options",
    "controller/src/record.rs": "stored",
    "controller/src/spec/mod.rs": "spec",
    "cypress/src/acl.rs": "options",
    "demo/src/swf.rs": "words",
    "jobproxy/src/codec.rs": "proxy",
    "kernel/src/command.rs": "words",
    "node/src/isolation.rs": "words",
    "reserve/src/memory_digest/stored.rs": "learned",
    "scheduler/src/config/pool.rs": "options",
    "scheduler/src/config/scheduler.rs": "options",
    "scheduler/src/config/tree.rs": "options",
    "scheduler/src/formula.rs": "words",
    "scheduler/src/options.rs": "options",
    "tables/src/chunk.rs": "stored",
    "tables/src/columns.rs": "stored",
    "tables/src/print.rs": "options",
    "tables/src/schema.rs": "options",
    "tables/src/writer.rs": "stored",
    "vocab/src/failure.rs": "stored",
    "vocab/src/id.rs": "words",
    "vocab/src/time.rs": "words",
    "wire/src/proto/failure.rs": "wire",
    "wire/src/proto/job.rs": "wire",
    "wire/src/proto/message.rs": "wire",
    "wire/src/proto/tables.rs": "wire",
    "yson/src/format.rs": "options",
    "yson/src/parse.rs": "yson",
    "yson/src/ypath/mod.rs": "ypath",
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
NO_TARGET = {
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
    parsers = {name for name, text in files.items() if PARSER.search(text.split("#[cfg(test)]")[0]) and "/tests" not in name}
    known = {*TARGETS, *NO_TARGET}
    assert parsers - known == set(), "parsers without a fuzz target: name it in TARGETS, or the reason in NO_TARGET"
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
