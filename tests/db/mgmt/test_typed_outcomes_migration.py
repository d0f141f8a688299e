"""Outcomes of earlier releases, which were words, become types; the audit stays append-only."""

from importlib import import_module

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from mgmt.models import ControlAction, TaskRun

pytestmark = pytest.mark.django_db
migration = import_module("mgmt.migrations.0045_typed_outcomes")
CONSTRAINTS = ("an_action_has_a_known_outcome", "only_a_refusal_has_a_type_of_reason")
REFUSED = {
    "deploying is paused on cell c1 by admin: no": "paused",
    "3 lanes are needed, but scaling is paused by admin until 2026-01-31 12:00:00 UTC: audit": "paused",
    "provisioning is changing cell c1: go-live of revision 3": "cell-busy",
    "cell c1 is asleep and is woken first": "cell-asleep",
    "cell c1 is unstable since 2026-01-31 12:00:00 UTC: process-0 has failed": "cell-unstable",
    "cell c1 is unknown since 2026-01-31 12:00:00 UTC: no heartbeat": "cell-unknown",
    "no heartbeats arrive: nothing is changed until one does": "cell-unknown",
    "cell c1 has not been judged since 2026-01-31 12:00:00 UTC": "verdict-outdated",
    "2 lanes are needed, but cell c1 was taken by another controller after token 7": "lease-lost",
    "something else": "other",
}
OUTCOMES = {
    "done": "done",
    "asked": "requested",
    "given up": "cancelled",
    "turned back": "rolled back",
    "rolled back": "rolled back",
    "unfinished": "unfinished",
    "odd": "failed",
}


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def store(outcome: str, reason: str) -> int:
    row = ControlAction(at=timezone.now(), controller="deploy", action="a", outcome=outcome, reason=reason)
    row.save()
    return row.id


def test_words_become_types_and_entries_are_kept_as_before():
    for name in CONSTRAINTS:
        execute(f"ALTER TABLE mgmt_controlaction DROP CONSTRAINT {name}")
    refused = {store("refused", reason): kind for reason, kind in REFUSED.items()}
    others = {store(old, "why"): new for old, new in OUTCOMES.items()}
    for task, said in (("a", "nothing to do"), ("b", "waiting for Kafka: x"), ("c", "PlacePipe")):
        TaskRun.objects.create(task=task, at=timezone.now(), said=said)
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute(migration.TYPED)
    found = {row.id: (row.outcome, row.refusal) for row in ControlAction.objects.all()}
    assert found == {
        **{number: ("refused", kind) for number, kind in refused.items()},
        **{number: (new, "") for number, new in others.items()},
    }
    runs = TaskRun.objects.order_by("task")
    assert [(row.outcome, row.since == row.at) for row in runs] == [
        ("nothing", True),
        ("waiting", True),
        ("changed", True),
    ]
    with pytest.raises(DatabaseError, match="control_action_is_kept"), transaction.atomic():
        ControlAction.objects.update(reason="x")
    execute(migration.UNTYPED)
    reverted = {**OUTCOMES, "turned back": "rolled back", "odd": "failed"}
    assert {row.id: row.outcome for row in ControlAction.objects.exclude(outcome="refused")} == dict(
        zip(others, reverted.values(), strict=True)
    ) | {
        number: old
        for (number, new), old in zip(others.items(), OUTCOMES, strict=True)
        if new in ("requested", "cancelled")
    }
