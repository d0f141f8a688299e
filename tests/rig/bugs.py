"""Bugs that a rig must catch, each as a change of one place in the code, and the check that must fail with it.

What is planted is what has been seen to lose or repeat messages in other systems. A change that fits no more is an
error: the code it was about has moved, and nobody knows any longer whether its check would notice.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from localbox.settings import ROOT

COPIED: Final = ("controlplane", "dataplane", "mgmt", "platform", "templates", "tests", "manage.py", "pyproject.toml")


class Bug(NamedTuple):
    """`code` in `file` becomes `planted`; `check` is the test that must fail."""

    name: str
    file: str
    code: str
    planted: str
    check: str


class MovedError(Exception):
    """The code that a bug was to be planted in is not there any more, or there more than once."""


BUGS: Final = (
    Bug(
        "2xx before the delivery report",
        "dataplane/ingest/replica.py",
        "            await batch.future\n",
        "            batch.places = [(2, 0)] * len(items)\n",
        "tests/unit/ingest/test_when_an_event_is_acked.py::test_no_answer_is_given_before_the_report",
    ),
    Bug(
        "2xx whatever the delivery report says",
        "dataplane/ingest/acks.py",
        "        if error is None and offset is not None:\n",
        "        if offset is not None:\n",
        "tests/unit/ingest/test_when_an_event_is_acked.py::test_a_request_is_acked_only_when_all_its_reports_are_good",
    ),
    Bug(
        "flush result ignored",
        "controlplane/kafka.py",
        "        if errors or unsent:\n",
        "        if errors:\n",
        "tests/unit/controlplane/test_kafka_clients.py::test_what_is_still_queued_when_the_flush_ends_is_not_stored",
    ),
    Bug(
        "commit before produce to retry-out",
        "dataplane/retrier/work.py",
        "        self._lane.outbox.send(topic.name, token, value=message.value(), headers=headers, **way)\n",
        "        self.acked(token)\n"
        "        self._lane.outbox.send(topic.name, None, value=message.value(), headers=headers, **way)\n",
        "tests/unit/retrier/test_retrier_work.py::test_only_what_the_next_topic_has_is_settled",
    ),
    Bug(
        "commit before the audit record is stored",
        "dataplane/runtime/checkpoint.py",
        '        """Begin a checkpoint with these audit records."""\n',
        '        """Begin a checkpoint with these audit records."""\n'
        "        self.committed(prefixes)\n"
        "        prefixes = {}\n",
        "tests/unit/runtime/test_checkpoint.py::test_what_is_frozen_is_committed_even_if_more_is_settled_meanwhile",
    ),
    Bug(
        "auto-commit on",
        "dataplane/runtime/kafka.py",
        '            "enable.auto.commit": False,\n            "enable.auto.offset.store": False,\n'
        '            "auto.offset.reset": "error",\n',
        '            "auto.offset.reset": "error",\n',
        "tests/integration/test_lane_consumer.py::test_a_lane_that_ends_without_a_word_has_committed_nothing",
    ),
    Bug(
        "latest after the offsets were lost",
        "dataplane/runtime/kafka.py",
        '            "auto.offset.reset": "error",\n',
        '            "auto.offset.reset": "earliest",\n',
        "tests/integration/test_lane_consumer.py::test_a_lane_that_has_lost_its_offset_stands_still_and_never_jumps",
    ),
    Bug(
        "retry of 400",
        "dataplane/transmit/verdict.py",
        '    4: Verdict(Outcome.DEAD, "rejected"),\n',
        '    4: Verdict(Outcome.RECOVERABLE, "rejected"),\n',
        "tests/unit/transmit/test_verdict.py::test_every_4xx_but_410_and_429_is_dead_and_never_retried",
    ),
    Bug(
        "retry id made anew",
        "dataplane/transmit/ends.py",
        "            attempt=send.meta.attempt + 1,\n            not_before_us=due_us,\n",
        '            id=f"{send.meta.id}-again",\n            attempt=send.meta.attempt + 1,\n'
        "            not_before_us=due_us,\n",
        "tests/unit/transmit/test_transmit_work.py::test_what_may_yet_be_delivered_is_parked_as_the_next_round",
    ),
    Bug(
        "a tenant's rows shown to whoever asks",
        "mgmt/access.py",
        "    return Pipe.objects.filter(tenant__memberships__user_id=user.pk)",
        "    return Pipe.objects.filter()",
        "tests/db/mgmt/test_who_may_reach_what.py::test_another_tenants_row_is_not_found_as_a_missing_one_is_not",
    ),
    Bug(
        "redirect followed",
        "dataplane/transmit/sender.py",
        "        curl.setopt(pycurl.FOLLOWLOCATION, 0)\n",
        "        curl.setopt(pycurl.FOLLOWLOCATION, 1)\n",
        "tests/unit/transmit/test_sender.py::test_a_redirect_is_an_answer_and_nobody_goes_where_it_points",
    ),
    Bug(
        "answer read without a bound",
        "dataplane/transmit/sender.py",
        "        return len(data) if self._read <= self._read_at_most else 0\n",
        "        return len(data)\n",
        "tests/unit/transmit/test_sender.py::test_a_body_without_end_is_cut_off_and_the_status_counts",
    ),
    Bug(
        "failed write of a dead letter swallowed",
        "dataplane/transmit/ends.py",
        "        self._end_turn(token)\n        slot, offset = send.places[0]\n",
        "        self._end_turn(token)\n        self.acked(token)\n        slot, offset = send.places[0]\n",
        "tests/unit/transmit/test_transmit_work.py::test_a_refused_message_is_dead_once_its_record_is_stored",
    ),
    Bug(
        "positions without the topic's generation",
        "dataplane/ledger/units.py",
        "    return (generation << PARTITION_BITS | partition) << OFFSET_BITS\n",
        "    return partition << OFFSET_BITS\n",
        "tests/unit/ledger/test_units.py::test_what_an_older_topic_of_the_name_delivered_hides_no_loss_in_the_new_one",
    ),
    Bug(
        "time in a delay tier counted as a request",
        "dataplane/transmit/ends.py",
        "            stopwatch=send.stamp(Slice.RETRY, time.monotonic()),\n",
        "            stopwatch=send.stamp(Slice.TRANSMIT, time.monotonic()),\n",
        "tests/unit/transmit/test_transmit_timing.py::test_waiting_in_a_tier_is_a_retry_and_no_time_of_the_node",
    ),
)


def copy_code(to: Path) -> None:
    """The checkout's code in another folder."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to / name)


def plant(bug: Bug, code: Path) -> None:
    """Put the bug into a copy. Raises MovedError."""
    path = code / bug.file
    text = path.read_text()
    if text.count(bug.code) != 1:
        raise MovedError(f"{bug.name}: {bug.file} has its place {text.count(bug.code)} times, needs it once")
    path.write_text(text.replace(bug.code, bug.planted))


def run_checks(code: Path, checks: list[str], env: Mapping[str, str]) -> tuple[int, str]:
    """pytest's exit code and output."""
    path = os.pathsep.join((str(code), str(code / "platform")))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        *checks,
    ]
    told = {**os.environ, **env, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    told.pop("DATABASE_URL", None)  # a database of its own: this run's is in use
    done = subprocess.run(command, cwd=code, env=told, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout + done.stderr
