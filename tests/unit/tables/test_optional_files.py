"""Optional files: a failure is reported in constant words until the file has worked for a while."""

import errno
import logging

import pytest

from dataplane.tables.optional_files import CALM_S, STALE_S, OptionalFiles

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    return clock


def attempt(files: OptionalFiles, what: str, failure: Exception | None = None) -> None:
    with files.attempt(what):
        if failure is not None:
            raise failure


def test_failure_is_reported_until_the_file_has_worked_for_a_while(
    now_s: list[float], caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    files = OptionalFiles()
    for _ in range(5):
        attempt(files, "notes", FULL)
        attempt(files, "notes")
        now_s[0] += 1
    attempt(files, "a snapshot", OSError("read-only"))
    assert (files.failing, files.trouble) == (2, "a snapshot: read-only; notes: No space left on device")
    now_s[0] += CALM_S
    assert files.trouble == "a snapshot: read-only", "the snapshot was not tried since"
    attempt(files, "a snapshot")
    now_s[0] += CALM_S
    assert (files.failing, files.trouble) == (0, "")
    assert [record.message for record in caplog.records] == [
        "cannot use notes, continuing without: No space left on device",
        "cannot use a snapshot, continuing without: read-only",
        "notes can be used again",
        "a snapshot can be used again",
    ]


def test_failure_that_is_not_repeated_expires(now_s: list[float]):
    files = OptionalFiles()
    attempt(files, "notes", FULL)
    now_s[0] += STALE_S - 1
    assert files.failing == 1
    now_s[0] += 1
    assert files.failing == 0


def test_other_errors_are_not_caught():
    with pytest.raises(KeyError):
        attempt(OptionalFiles(), "notes", KeyError("x"))
