"""A pipe's migration is decided from a snapshot alone: each row is one situation and the step in it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from controlplane.control_topic import PublishedRecord
from controlplane.interlocks import CellState, LeaseView, PauseView, VerdictView
from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.migrating import (
    LAST_REQUESTS,
    PATIENCE,
    AbandonMigration,
    AnnotateMigration,
    FinishMigration,
    HoldAtTarget,
    MigrationStep,
    RecordIngestLeft,
    RecordSourceEnds,
    RevertMigration,
    SwitchToTarget,
    next_steps,
)
from controlplane.provisioner.snapshot import (
    BelievedHeartbeat,
    CellSnapshot,
    MigrationView,
    PipePlacement,
    ProvisionerSnapshot,
    RevisionSnapshot,
    VersionedRow,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CELLS = [CellSnapshot(cell, 1, 1, bound=True, desired=None, release="r") for cell in ("c1", "c2")]
ASKED = MigrationView(1, "p1", "c1", "c2", "requested", NOW - timedelta(minutes=1))
DRAINING = structs.replace(ASKED, state="draining")
LEFT = structs.replace(DRAINING, left_at=NOW - LAST_REQUESTS)
HELD = 100


def heartbeats(held: int = HELD, cell: str = "c2") -> list[BelievedHeartbeat]:
    lanes = [BelievedHeartbeat(cell, f"{kind}-0", kind, 1, "running", held) for kind in ("process", "transmit")]
    return [*lanes, BelievedHeartbeat("", "ingest-1", "ingest", 0, "running", held)]


def state(cell: str, verdict: str = "stable", **changes: Any) -> CellState:
    seen = VerdictView(verdict, [] if verdict == "stable" else ["process-0 is silent"], NOW, NOW)
    return CellState(cell, changes.get("pauses", []), changes.get("lease"), seen, NOW)


def snapshot(row: MigrationView, **changes: Any) -> ProvisionerSnapshot:
    fields: dict[str, Any] = {
        "cells": CELLS,
        "pipes": [PipePlacement("p1", 2, active=True, cell=row.source if row.state == "requested" else row.target)],
        "revisions": [RevisionSnapshot(1, "p1", 1, "live")],
        "keys": [VersionedRow("p1", "digest", 1)],
        "destinations": [VersionedRow("p1", "crm", 1)],
        "heartbeats": heartbeats(),
        "published": {},
        "master": "local[16]",
        "states": {cell: state(cell) for cell in ("c1", "c2")},
        "migrations": [row],
        "now": NOW,
    } | changes
    made = ProvisionerSnapshot(**fields)
    if "published" in changes:
        return made
    told = {
        key: PublishedRecord(version, offset) for offset, (key, version) in enumerate(wanted_versions(made).items())
    }
    return structs.replace(made, published=told)


def unwell(cell: str, other: str) -> dict[str, CellState]:
    return {cell: state(cell, "unstable"), other: state(other)}


PAUSE = PauseView("provision", "root", "night", None, "c1")
LEASE = LeaseView("deploy", "a release", NOW + timedelta(seconds=5))
STEPS: list[tuple[str, ProvisionerSnapshot, MigrationStep]] = [
    ("all is ready", snapshot(ASKED), SwitchToTarget(1)),
    ("the source is unwell, which keeps nobody there", snapshot(ASKED, states=unwell("c1", "c2")), SwitchToTarget(1)),
    ("it keeps an order", snapshot(structs.replace(ASKED, in_order=True)), HoldAtTarget(1)),
    ("the target holds what will come", snapshot(structs.replace(ASKED, in_order=True, held=True)), SwitchToTarget(1)),
    (
        "the target is unwell, and one in order is not turned back",
        snapshot(structs.replace(DRAINING, held=True), states=unwell("c2", "c1")),
        RecordIngestLeft(1),
    ),
    ("it cannot be migrated", snapshot(structs.replace(ASKED, unfit="has dedup")), AbandonMigration(1, "has dedup")),
    (
        "it has waited too long",
        snapshot(structs.replace(ASKED, busy="waiting for a move", asked_at=NOW - PATIENCE - timedelta(seconds=1))),
        AbandonMigration(1, "not within 30 min: waiting for a move"),
    ),
    ("replicas have the switch", snapshot(DRAINING), RecordIngestLeft(1)),
    ("requests of before are over", snapshot(LEFT), RecordSourceEnds(1)),
    ("all was passed", snapshot(structs.replace(LEFT, ends=True)), FinishMigration(1)),
    (
        "all was passed on a source that is unwell",
        snapshot(structs.replace(LEFT, ends=True), states=unwell("c1", "c2")),
        FinishMigration(1),
    ),
    (
        "the target is unwell",
        snapshot(DRAINING, states=unwell("c2", "c1")),
        RevertMigration(1, "cell c2 is unstable since 2026-11-21 12:00:00 UTC: process-0 is silent"),
    ),
    (
        "a way back is not turned",
        snapshot(structs.replace(DRAINING, is_revert=True), states=unwell("c2", "c1")),
        RecordIngestLeft(1),
    ),
    (
        "both are unwell",
        snapshot(DRAINING, states={cell: state(cell, "unstable") for cell in ("c1", "c2")}),
        RecordIngestLeft(1),
    ),
]
WAITS: list[tuple[str, ProvisionerSnapshot, str]] = [
    ("a move runs", snapshot(structs.replace(ASKED, busy="waiting for a move")), "waiting for a move"),
    (
        "no topics",
        snapshot(ASKED, cells=[CELLS[0], structs.replace(CELLS[1], bound=False)]),
        "waiting for cell c2: it has",
    ),
    (
        "compute is away",
        snapshot(ASKED, cells=[CELLS[0], structs.replace(CELLS[1], problem="away")]),
        "waiting for cell c2: away",
    ),
    ("not published", snapshot(ASKED, published={}), "publishing"),
    (
        "only the source's lanes beat",
        snapshot(ASKED, heartbeats=heartbeats(cell="c1")),
        "waiting for cell c2: no process lane",
    ),
    (
        "a lane is behind",
        snapshot(ASKED, heartbeats=heartbeats(held=1)),
        "waiting for process-0: it has read control records up to 1 of",
    ),
    ("the target is unwell", snapshot(ASKED, states=unwell("c2", "c1")), "cell c2 is unstable"),
    (
        "the source is changed",
        snapshot(ASKED, states={"c1": state("c1", lease=LEASE), "c2": state("c2")}),
        "deploying is changing cell c1",
    ),
    (
        "paused on the source",
        snapshot(ASKED, states={"c1": state("c1", pauses=[PAUSE]), "c2": state("c2")}),
        "provisioning is paused on cell c1",
    ),
    (
        "a replica is behind",
        snapshot(DRAINING, heartbeats=heartbeats(held=0)),
        "waiting for ingest-1: it has read control records up to 0 of",
    ),
    ("no replica beats", snapshot(DRAINING, heartbeats=heartbeats()[:2]), "waiting for ingest: no replica"),
    ("a request may be under way", snapshot(structs.replace(LEFT, left_at=NOW)), "requests that began before"),
    (
        "the source has some",
        snapshot(structs.replace(LEFT, ends=True, behind="t/0 is read up to 1 of 2")),
        "t/0 is read up to 1 of 2",
    ),
    (
        "the target is changed",
        snapshot(structs.replace(LEFT, ends=True), states={"c1": state("c1"), "c2": state("c2", lease=LEASE)}),
        "deploying is changing cell c2",
    ),
]


@pytest.mark.parametrize(("now", "step"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_migration_decides_the_next_step(now: ProvisionerSnapshot, step: MigrationStep):
    assert next_steps(now) == [step]


@pytest.mark.parametrize(("now", "words"), [row[1:] for row in WAITS], ids=[row[0] for row in WAITS])
def test_migration_reports_what_it_waits_for_once(now: ProvisionerSnapshot, words: str):
    (said,) = next_steps(now)
    assert isinstance(said, AnnotateMigration)
    assert said.says.startswith(words)
    again = [structs.replace(row, says=said.says) for row in now.migrations]
    assert next_steps(structs.replace(now, migrations=again)) == []


REFUSALS = {
    "the target is unwell": "cell-unstable",
    "the source is changed": "cell-busy",
    "paused on the source": "paused",
    "the target is changed": "cell-busy",
}


@pytest.mark.parametrize(("case", "now"), [row[:2] for row in WAITS], ids=[row[0] for row in WAITS])
def test_step_that_the_interlocks_refuse_has_the_type_of_the_reason(case: str, now: ProvisionerSnapshot):
    (said,) = next_steps(now)
    assert isinstance(said, AnnotateMigration)
    assert said.refusal == REFUSALS.get(case)


def test_outdated_verdict_reverts_no_migration():
    old = VerdictView("unstable", ["gone"], NOW, NOW - timedelta(minutes=5))
    states = {"c1": state("c1"), "c2": CellState("c2", [], None, old, NOW)}
    assert next_steps(snapshot(DRAINING, states=states)) == [RecordIngestLeft(1)]


def test_snapshot_without_migrations_gives_no_step():
    assert next_steps(snapshot(ASKED, migrations=[], states={})) == []
