"""The events of the demo, and the logs of its sender and receiver."""

import hashlib
from pathlib import Path

import pytest

from localbox.demo.logs import read_received, read_sent
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.errors import BoxError


def test_shipped_events_match_the_digest_in_their_readme():
    digest = hashlib.sha256(SHIPPED.read_bytes()).hexdigest()
    assert digest in (SHIPPED.parent / "README.md").read_text()
    assert len(read_payloads(SHIPPED)) == 329


def test_file_without_events_is_refused_by_name(tmp_path: Path):
    (tmp_path / "none.jsonl").write_text("\n\n")
    with pytest.raises(BoxError, match=r"EVENTS: .*none.jsonl holds no events"):
        read_payloads(tmp_path / "none.jsonl")


def test_logs_are_read_without_an_incomplete_last_line(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("0\t1\t2\t202\tmsg_1\t1-0-7\t29\tab\n1\t1\t2\t0\t\t\t0\tcd\n2\t1")
    first, second = read_sent(log)
    assert (first.status, first.position, first.may_be_stored) == (202, (1 << 54) + 7, False)
    assert (second.position, second.may_be_stored) == (None, True)
    log.write_text("5\tmsg_1\t1-0-7\tab\n")
    assert [line.message_id for line in read_received(log)] == ["msg_1"]
