"""What tests of faults have in common."""

import os
import pathlib
import subprocess
import tempfile

import pytest


@pytest.fixture
def small_disk():
    """A file system of 16 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="millpond-disk-"))
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(directory)],
                          capture_output=True, text=True)
    if done.returncode:
        directory.rmdir()
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)
    directory.rmdir()
