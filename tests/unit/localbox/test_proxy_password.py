"""A proxy's password reaches Ivy's JVM by a file that only this user can read, and not by the list of processes.

A program that records its start takes the place of `java`.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from localbox.jars import JarSet, ensure_jars

PASSWORD: Final = "s@cret"
RECORDER: Final = """#!{python}
import json, sys
from pathlib import Path

options = Path(sys.argv[1].removeprefix("@"))
record = {{"arguments": sys.argv[1:], "mode": oct(options.parent.stat().st_mode & 0o777)}}
record["options"] = options.read_text() if options.is_file() else ""
Path({record!r}).write_text(json.dumps(record))
lib = Path(sys.argv[sys.argv.index("-retrieve") + 1]).parent
lib.mkdir(parents=True)
(lib / "one.jar").write_bytes(b"jar")
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that other users may read, as that of a shared machine."""
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def record(tmp_path: Path, cache: Path) -> dict[str, Any]:
    """Retrieve a set of one jar, and return what `java` was given."""
    java, written = tmp_path / "java", tmp_path / "record.json"
    java.write_text(RECORDER.format(python=sys.executable, record=str(written)))
    java.chmod(0o755)
    checksums = tmp_path / "jars.sha256"
    checksums.write_text(f"{hashlib.sha256(b'jar').hexdigest()}  one.jar\n")
    env = {"HTTPS_PROXY": "http://alice:s%40cret@127.0.0.1:3128"}
    ensure_jars(JarSet("Test jars", "broker", checksums), java=java, cache=cache, env=env)
    found: dict[str, Any] = json.loads(written.read_text())
    return found


def test_arguments_have_no_password(record: dict[str, Any]):
    arguments = " ".join(record["arguments"])
    assert PASSWORD not in arguments
    assert "s%40cret" not in arguments
    assert f'"-Dhttp.proxyPassword={PASSWORD}"' in record["options"].splitlines()


def test_directory_of_the_options_is_closed_to_other_users(record: dict[str, Any]):
    assert record["mode"] == "0o700"


def test_options_are_removed_after_the_download(record: dict[str, Any], cache: Path):
    assert "alice" in record["options"]
    assert sorted(path.suffix for path in cache.rglob("*") if path.is_file()) == [".jar", ".lock"]
