"""Bugs that the tests must catch: each is a change of one place in the code, with the check that must fail.

The planted bugs have lost or repeated messages in other systems. A change that no longer applies is an error: its
code has moved, so it is unknown whether its check would fail.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from localbox.settings import ROOT

COPIED: Final = (
    "controlplane",
    "dataplane",
    "mgmt",
    "platform",
    "templates",
    "tests",
    "manage.py",
    "pyproject.toml",
    "requirements-dev.lock",
)


class Bug(NamedTuple):
    """Planted bug: `code` in `file` becomes `planted`; `check` is the test that must fail."""

    name: str
    file: str
    code: str
    planted: str
    check: str


class MovedError(Exception):
    """Code for a planted bug that is missing, or present more than once."""


BUGS: Final = (
    Bug(
        "2xx before the delivery report",
        "dataplane/ingest/replica.py",
        "            await batch.future\n",
        "            batch.places = [(2, 0)] * len(items)\n",
        "tests/unit/ingest/test_ack_after_delivery_report.py::test_no_response_is_sent_before_the_delivery_report",
    ),
    Bug(
        "2xx whatever the delivery report says",
        "dataplane/ingest/acks.py",
        "        if error is None and offset is not None and pace.rises(partition, offset):\n",
        "        if offset is not None and pace.rises(partition, offset):\n",
        "tests/unit/ingest/test_ack_after_delivery_report.py::test_request_is_acked_only_when_all_its_delivery_reports_succeed",
    ),
    Bug(
        "flush result ignored",
        "controlplane/kafka.py",
        "        if errors or unsent:\n",
        "        if errors:\n",
        "tests/unit/controlplane/test_kafka_clients.py::test_records_still_queued_after_the_flush_count_as_not_stored",
    ),
    Bug(
        "commit before produce to retry-out",
        "dataplane/retrier/work.py",
        "        self._lane.producer.send(topic.name, token, value=message.value(), headers=headers, **routing)\n",
        "        self.on_delivery(token)\n"
        "        self._lane.producer.send(topic.name, None, value=message.value(), headers=headers, **routing)\n",
        "tests/unit/retrier/test_retrier_work.py::test_only_messages_stored_in_the_next_topic_are_settled",
    ),
    Bug(
        "commit before the audit record is stored",
        "dataplane/runtime/lanes/checkpoint.py",
        '        """Begin a checkpoint with these audit records."""\n',
        '        """Begin a checkpoint with these audit records."""\n'
        "        self.committed(prefixes)\n"
        "        prefixes = {}\n",
        "tests/unit/runtime/test_checkpoint.py::test_frozen_offset_is_committed_even_if_more_settles_meanwhile",
    ),
    Bug(
        "auto-commit on",
        "dataplane/runtime/kafka.py",
        '            "enable.auto.commit": False,\n            "enable.auto.offset.store": False,\n'
        '            "auto.offset.reset": "error",\n',
        '            "auto.offset.reset": "error",\n',
        "tests/integration/test_lane_consumer.py::test_lane_that_ends_without_a_checkpoint_has_committed_nothing",
    ),
    Bug(
        "latest after the offsets were lost",
        "dataplane/runtime/kafka.py",
        '            "auto.offset.reset": "error",\n',
        '            "auto.offset.reset": "earliest",\n',
        "tests/integration/test_lane_consumer.py::test_lane_with_a_lost_offset_stops_and_never_jumps",
    ),
    Bug(
        "retry of 400",
        "dataplane/transmit/policy/delivery_verdict.py",
        "    4: DeliveryVerdict(DeliveryOutcome.DEAD, Cause.REJECTED),\n",
        "    4: DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.REJECTED),\n",
        "tests/unit/transmit/test_verdict.py::test_every_4xx_but_410_and_429_is_dead_and_never_retried",
    ),
    Bug(
        "new id for each retry",
        "dataplane/transmit/outcomes/outcomes.py",
        "            attempt=send.meta.attempt + 1,\n            not_before_us=due_us,\n",
        '            id=f"{send.meta.id}-again",\n            attempt=send.meta.attempt + 1,\n'
        "            not_before_us=due_us,\n",
        "tests/unit/transmit/test_transmit_work.py::test_recoverable_failure_schedules_a_retry_as_the_next_round",
    ),
    Bug(
        "a tenant's rows shown to any user",
        "mgmt/web/access.py",
        '    rows = Pipe.objects.filter(_reached(user, "tenant__"))',
        "    rows = Pipe.objects.filter()",
        "tests/db/mgmt/test_access_matrix.py::test_row_of_another_tenant_is_404_without_row_security",
    ),
    Bug(
        "a token of one pipe opens all pipes",
        "mgmt/web/access.py",
        "rows.filter(id=user.grant.pipe_id) if user.grant and user.grant.pipe_id else rows",
        "rows",
        "tests/db/mgmt/test_token_matrix.py::test_token_of_one_pipe_reaches_that_pipe_only",
    ),
    Bug(
        "a token acts with all of its user's role",
        "mgmt/tokens/authentication.py",
        "lower_role(ROLE_OF_SCOPE[ApiToken.Scope(token.scope)], role)",
        "role",
        "tests/db/mgmt/test_token_matrix.py::test_scope_allows_exactly_what_its_role_does",
    ),
    Bug(
        "redirect followed",
        "dataplane/transmit/http/sender.py",
        "        curl.setopt(pycurl.FOLLOWLOCATION, 0)\n",
        "        curl.setopt(pycurl.FOLLOWLOCATION, 1)\n",
        "tests/unit/transmit/test_sender.py::test_redirect_is_a_response_and_is_not_followed",
    ),
    Bug(
        "answer read without a bound",
        "dataplane/transmit/http/sender.py",
        "        return len(data) if self._read <= self._read_at_most else 0\n",
        "        return len(data)\n",
        "tests/unit/transmit/test_sender.py::test_endless_body_is_cut_off_and_the_status_counts",
    ),
    Bug(
        "failed write of a dead letter swallowed",
        "dataplane/transmit/outcomes/outcomes.py",
        "        self._end_turn(token)\n        slot, offset = send.places[0]\n",
        "        self._end_turn(token)\n        self.on_delivery(token)\n        slot, offset = send.places[0]\n",
        "tests/unit/transmit/test_transmit_work.py::test_refused_message_is_dead_once_its_record_is_stored",
    ),
    Bug(
        "positions without the topic's generation",
        "dataplane/ledger/units.py",
        "    return (generation << PARTITION_BITS | partition) << OFFSET_BITS\n",
        "    return partition << OFFSET_BITS\n",
        "tests/unit/ledger/test_units.py::test_deliveries_of_an_older_topic_generation_hide_no_loss_in_the_new_one",
    ),
    Bug(
        "time in a delay tier counted as a request",
        "dataplane/transmit/outcomes/outcomes.py",
        "            stopwatch=send.stamp(Slice.RETRY, time.monotonic()),\n",
        "            stopwatch=send.stamp(Slice.TRANSMIT, time.monotonic()),\n",
        "tests/unit/transmit/test_transmit_timing.py::test_wait_in_a_tier_counts_as_retry_and_not_as_time_of_the_node",
    ),
)


def copy_code(to: Path) -> None:
    """Copy the checkout's code to another folder."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to / name)


def plant(bug: Bug, code: Path) -> None:
    """Plant the bug in a copy. Raises MovedError."""
    path = code / bug.file
    text = path.read_text()
    if text.count(bug.code) != 1:
        raise MovedError(f"{bug.name}: {bug.file} has its place {text.count(bug.code)} times, needs it once")
    path.write_text(text.replace(bug.code, bug.planted))


def run_checks(code: Path, checks: list[str], env: Mapping[str, str]) -> tuple[int, str]:
    """Run the checks and return pytest's exit code and output."""
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
        "--exitfirst",
        *checks,
    ]
    variables = {**os.environ, **env, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("DATABASE_URL", None)  # the checks use another database: this run's is in use
    done = subprocess.run(command, cwd=code, env=variables, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr
