"""Numeric drift, from the lanes' sketches to an alert of a pipe that names the field and both distributions."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec import structs

from controlplane.observer.fields import add_samples
from controlplane.observer.notices import send_due
from controlplane.observer.numbers import NO_VALUES, USUAL
from controlplane.observer.patterns import watch_patterns
from controlplane.observer.trim import trim
from dataplane.causes import Cause
from dataplane.ledger.fields import FieldCounter
from mgmt.errors import InvalidValue, LimitReachedError, NameTakenError
from mgmt.models import (
    Alert,
    CellVerdict,
    ControlAction,
    FieldHour,
    IgnoredField,
    NumberState,
    PatternHour,
    PatternMark,
    Pipe,
    PipeRevision,
    Ramp,
    Tenant,
    User,
)
from mgmt.patterns import services
from mgmt.patterns.blocks import IN_HOUR, MINUTES, PatternBlock, hour_of
from mgmt.patterns.numbers import LEAST_HOURS, NumberWatch
from mgmt.patterns.shares import EMPTY, numbers_of, with_numbers
from mgmt.patterns.usual import HOURS_BACK
from mgmt.services import create_pipe, ignore_field, resolve_alert, watch_field
from tests.db.cast import MakeSpec
from tests.db.channels import add_active_channel
from tests.db.controlplane.watching import BLOCK, FIRST, GRACE_S, NOW, START, watch_from_first, well_cell

LOW: Final = [number / 1_000 for number in range(100, 200)]
USUAL_SCORES: Final = [number / 1_000 for number in range(200, 1_000, 5)]


def observed(pipe: Pipe, number: int, scores: Sequence[float], path: str = "score", source: str = "shop") -> Any:
    counter = FieldCounter(with_values=True)
    for score in scores:
        counter.add({path: score})
    return counter.observation(pipe.id, source, number * MINUTES)


def had(pipe: Pipe, path: str = "score") -> None:
    """Store the usual scores in each of the hours used for comparison, and a field watched for long enough."""
    hour = with_numbers(EMPTY, numbers_of([observed(pipe, FIRST, USUAL_SCORES * 4, path)]))
    hours = [hour_of(FIRST) - back for back in HOURS_BACK]
    encoded = msgspec.msgpack.encode(hour)
    FieldHour.objects.bulk_create([FieldHour(pipe_id=pipe.id, source="shop", hour=at, shares=encoded) for at in hours])
    blocks = msgspec.to_builtins([PatternBlock(1_000)] * IN_HOUR)
    PatternHour.objects.bulk_create([PatternHour(pipe_id=pipe.id, hour=at, blocks=blocks) for at in hours])
    watches = {path: NumberWatch(indexes=bytes(LEAST_HOURS), hour=hour_of(FIRST) - 1, seen=FIRST - 1)}
    NumberState.objects.create(pipe_id=pipe.id, source="shop", block=FIRST - 1, watches=msgspec.msgpack.encode(watches))


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    watch_from_first(pipe, well_cell())
    had(pipe)
    return pipe


def at(block: int) -> datetime:
    """Return the first moment at which the block number FIRST + `block` can be judged."""
    return NOW + block * BLOCK


def watched(pipe: Pipe, blocks: range, scores: Sequence[float]) -> None:
    """Report the scores in these blocks after FIRST, and judge each."""
    for block in blocks:
        add_samples([observed(pipe, FIRST + block, scores)])
        watch_patterns(at(block), GRACE_S)


def drift_of(pipe: Pipe) -> Alert:
    return Alert.objects.get(pipe=pipe, cause=Cause.NUMERIC_DRIFT)


def test_shifted_scores_open_an_alert_with_both_distributions_and_usual_ones_resolve_it(placed: Pipe, tenant: Tenant):
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    watched(placed, range(5), LOW)
    assert not Alert.objects.exists(), "one window is not enough"
    watched(placed, range(5, 6), LOW)
    alert = drift_of(placed)
    (field,) = alert.details["fields"]
    assert (field["source"], field["field"], alert.count, alert.destination) == ("shop", "score", 1, "")
    assert field["words"].startswith("score of source shop: median 0.149, usually 0.599 at this hour of the week; ")
    assert field["stability_index"] > field["threshold"] == 0.25
    assert field["since"] == START.isoformat()
    assert list(field["quantiles"]) == ["p10", "p25", "p50", "p75", "p90"]
    send_due(at(6))
    (sent,) = mail.outbox
    assert sent.subject == f"[Penstock] Numeric fields of {placed.name} have unusual values"
    assert field["words"] in sent.body
    watched(placed, range(6, 9), USUAL_SCORES)
    alert.refresh_from_db()
    assert alert.state == "opened", "one usual window is not enough"
    watched(placed, range(9, 12), USUAL_SCORES)
    alert.refresh_from_db()
    assert (alert.state, alert.resolution) == ("resolved", USUAL)


def test_usual_scores_open_nothing(placed: Pipe):
    watched(placed, range(12), USUAL_SCORES)
    assert not Alert.objects.exists()
    state = msgspec.msgpack.decode(bytes(NumberState.objects.get().watches), type=dict[str, NumberWatch])["score"]
    assert (len(state.indexes), state.streak) == (LEAST_HOURS, None)
    assert state.last > 0


@pytest.mark.parametrize("change", ["deploy", "revision", "ramp", "pause", "unstable"])
def test_nothing_opens_while_the_cell_or_the_pipe_changes(placed: Pipe, change: str):
    if change == "deploy":
        at_6 = START + 6 * BLOCK
        ControlAction.objects.create(controller="deploy", action="deploy", outcome="done", cell=placed.cell, at=at_6)
    elif change == "revision":
        PipeRevision.objects.filter(pipe=placed).update(live_at=START + 6 * BLOCK)
    elif change == "ramp":
        stable = placed.revisions.get()
        second = PipeRevision.objects.create(pipe=placed, number=2, spec=stable.spec, state="ramping")
        Ramp.objects.create(revision=second, stable=stable, share=5, began_at=START)
    elif change == "unstable":
        CellVerdict.objects.update(state="unstable")
    else:
        Pipe.objects.filter(id=placed.id).update(state="paused")
    watched(placed, range(4), LOW)
    assert not Alert.objects.exists()
    watched(placed, range(4, 8), LOW)
    assert not Alert.objects.exists()


def test_values_of_several_lanes_are_judged_together_and_each_block_once(placed: Pipe):
    for block in range(6):
        add_samples([observed(placed, FIRST + block, LOW[::2]), observed(placed, FIRST + block, LOW[1::2])])
        watch_patterns(at(block), GRACE_S)
        before = list(NumberState.objects.values())
        PatternMark.objects.update(block=FIRST + block - 1)  # as left by a run that was killed before it moved the mark
        watch_patterns(at(block) + timedelta(seconds=9), GRACE_S)
        assert list(NumberState.objects.values()) == before
    assert drift_of(placed).details["fields"][0]["values"] == 300


def test_samples_of_lanes_of_the_previous_release_are_judged_without_numbers(placed: Pipe):
    for block in range(6):
        sample = observed(placed, FIRST + block, LOW)
        add_samples([structs.replace(sample, fields=[structs.replace(field, numbers=None) for field in sample.fields])])
        watch_patterns(at(block), GRACE_S)
    assert not Alert.objects.exists()
    assert FieldHour.objects.get(hour=hour_of(FIRST)).shares


def test_hours_stored_by_the_previous_release_have_no_numbers(placed: Pipe):
    for row in FieldHour.objects.all():
        row.shares = msgspec.msgpack.encode(msgspec.msgpack.decode(bytes(row.shares))[:2])
        row.save()
    watched(placed, range(6), LOW)
    assert not Alert.objects.exists()


def test_alert_of_a_pipe_without_events_is_resolved_after_a_day(placed: Pipe):
    watched(placed, range(6), LOW)
    PatternMark.objects.update(block=FIRST + 600)
    watch_patterns(at(601), GRACE_S)
    assert drift_of(placed).resolution == NO_VALUES


def test_alert_that_was_resolved_by_hand_opens_again_while_the_values_drift(placed: Pipe, alice: User):
    watched(placed, range(6), LOW)
    resolve_alert(alert=drift_of(placed), now=at(6), by=alice)
    watched(placed, range(6, 9), LOW)
    assert Alert.objects.filter(pipe=placed).exclude(state="resolved").count() == 1


def test_ignored_field_opens_no_alert_and_resolves_the_open_one(placed: Pipe, alice: User):
    watched(placed, range(6), LOW)
    row = ignore_field(pipe=placed, source="shop", path="score", by=alice, now=at(6))
    assert drift_of(placed).resolution == "score of source shop is ignored"
    watched(placed, range(6, 9), LOW)
    assert Alert.objects.count() == 1
    watch_field(ignored=row)
    watched(placed, range(9, 12), LOW)
    assert Alert.objects.exclude(state="resolved").count() == 1


def test_ignored_field_is_left_out_of_an_alert_about_several(placed: Pipe, alice: User):
    state = NumberState.objects.get()
    watches = msgspec.msgpack.decode(bytes(state.watches), type=dict[str, NumberWatch])
    NumberState.objects.update(watches=msgspec.msgpack.encode(watches | {"other": watches["score"]}))
    for row in FieldHour.objects.all():
        shares = msgspec.msgpack.decode(bytes(row.shares), type=type(EMPTY))
        both = structs.replace(shares, numbers={**shares.numbers, "other": shares.numbers["score"]})
        FieldHour.objects.filter(id=row.id).update(shares=msgspec.msgpack.encode(both))
    for block in range(6):
        counter = FieldCounter(with_values=True)
        for score in LOW:
            counter.add({"score": score, "other": score})
        add_samples([counter.observation(placed.id, "shop", (FIRST + block) * MINUTES)])
        watch_patterns(at(block), GRACE_S)
    assert drift_of(placed).count == 2
    ignore_field(pipe=placed, source="shop", path="score", by=alice, now=at(6))
    assert [field["field"] for field in drift_of(placed).details["fields"]] == ["other"]


def test_ignored_fields_are_checked_and_limited(placed: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch):
    def ignore(source: str, path: str) -> IgnoredField:
        return ignore_field(pipe=placed, source=source, path=path, by=alice, now=NOW)

    ignore("shop", "score")
    with pytest.raises(NameTakenError):
        ignore("shop", "score")
    for source, path in (("", "score"), ("shop", ""), ("shop", "x" * 201), ("x" * 41, "score"), ("shop", "a\x00")):
        with pytest.raises(InvalidValue):
            ignore(source, path)
    monkeypatch.setattr(services, "MOST_IGNORED", 1)
    with pytest.raises(LimitReachedError):
        ignore("shop", "total")
    assert IgnoredField.objects.count() == 1


def test_query_count_does_not_grow_with_pipes(placed: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    def queries(now: datetime) -> int:
        with CaptureQueriesContext(connection) as asked:
            watch_patterns(now, GRACE_S)
        return len(asked)

    add_samples([observed(placed, FIRST, USUAL_SCORES)])
    with_one = queries(NOW)
    for number in range(10):
        pipe = create_pipe(tenant=tenant, name=f"more {number}", spec=a_spec(), author=alice)
        Pipe.objects.filter(id=pipe.id).update(cell=placed.cell)
        had(pipe)
        add_samples([observed(pipe, FIRST + 1, USUAL_SCORES)])
    assert queries(NOW + BLOCK) <= with_one + 1  # existing findings are updated, new ones inserted


def test_states_are_trimmed_once_their_hours_are_no_longer_compared(placed: Pipe):
    for days, kept in ((28, 1), (30, 0)):
        trim(NOW + timedelta(days=days), attempts_keep_h=1, seals_keep_d=400, ends_keep=timedelta(days=1))
        assert NumberState.objects.count() == kept
