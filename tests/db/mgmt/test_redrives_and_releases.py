"""A held or dead message is in exactly one redrive or release, in order, and returns if that is aborted."""

from datetime import UTC, datetime, timedelta

import pytest
from pyroaring import BitMap64

from dataplane.tables.redrives import REDRIVES_VERSION, RedriveProgress
from mgmt.deliveries.queries.delivery import delivery_states
from mgmt.deliveries.queries.message_selection import MessageSelection, preview
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places, united
from mgmt.deliveries.services.redrives import note_progress, release_leftovers
from mgmt.models import Cell, DeadLetter, Destination, HeldMessage, OffsetSet, Pipe, Redrive, User
from mgmt.services import (
    InvalidValue,
    NothingToRedriveError,
    adopt_live_spec,
    cancel_redrive,
    pause_destination,
    pause_pipe,
    resume_destination,
    resume_pipe,
    start_redrive,
)

HOUR = 490_000
START = datetime.fromtimestamp(HOUR * 3600, UTC)
NOW = START + timedelta(hours=2)
DEAD, HELD = "penstock.c1.dead.g1", "penstock.c1.held.g1"


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe


def store(pipe: Pipe, kind: str, offsets: range, *, cause: str = "", minute: int = 0, partition: int = 0) -> None:
    topic = DEAD if kind == "dead" else HELD
    at_s = HOUR * 3600 + minute * 60
    add_places(
        StoredPosition(OffsetSetKey(pipe.id, "crm", kind, cause, topic, partition, at_s // 3600), offset, at_s)
        for offset in offsets
    )


def letter(pipe: Pipe, offset: int, cause: str = "rejected", key: str = "") -> DeadLetter:
    return DeadLetter.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        node="transmit:crm",
        cause=cause,
        message_id=f"m{offset}",
        key=key,
        position=offset,
        bucket=HOUR * 60,
        revision=1,
        attempts=0,
        at=START,
        topic=DEAD,
        partition=0,
        offset=offset,
    )


def held(pipe: Pipe, offset: int, key: str) -> HeldMessage:
    place = {"topic": HELD, "partition": 0, "offset": offset}
    more = {"message_id": f"m{offset}", "key": key, "position": offset, "at": START}
    return HeldMessage.objects.create(pipe_id=pipe.id, destination="crm", **more, **place)


def progress(move: Redrive, reached: int, *, done: bool, moved: int = 0, topic: str = DEAD) -> RedriveProgress:
    return RedriveProgress(REDRIVES_VERSION, move.id, moved, 0, move.total, done, 0, {f"{topic}/0": reached})


def waiting(pipe: Pipe, kind: str = "dead") -> list[int]:
    rows = OffsetSet.objects.filter(pipe_id=pipe.id, kind=kind)
    return sorted(offset for row in rows for offset in BitMap64.deserialize(bytes(row.offsets)))


def test_redrive_claims_the_selected_messages_and_a_second_one_finds_nothing(placed: Pipe, alice: User):
    store(placed, "dead", range(10), cause="rejected")
    store(placed, "dead", range(10, 14), cause="gave-up")
    chosen = MessageSelection("crm", cause="rejected")
    assert preview(pipe_id=placed.id, chosen=chosen).count == 10
    move = start_redrive(pipe=placed, chosen=chosen, by=alice)
    assert (move.total, move.what, waiting(placed)) == (10, "redrive", [10, 11, 12, 13])
    assert united(move.taken) == {(DEAD, 0): BitMap64(range(10))}
    with pytest.raises(NothingToRedriveError):
        start_redrive(pipe=placed, chosen=chosen)


def test_selection_by_time_uses_whole_minutes(placed: Pipe):
    store(placed, "dead", range(5), cause="rejected", minute=3)
    store(placed, "dead", range(5, 9), cause="rejected", minute=7)
    store(placed, "dead", range(9, 12), cause="rejected", minute=70)

    def count(since: int | None, until: int | None) -> int:
        first, last = (None if at is None else START + timedelta(minutes=at) for at in (since, until))
        return preview(pipe_id=placed.id, chosen=MessageSelection("crm", since=first, until=last)).count

    assert [count(None, None), count(4, None), count(None, 4), count(3, 7), count(8, 70), count(8, 71)] == [
        12,
        7,
        5,
        5,
        0,
        3,
    ]
    seen = preview(pipe_id=placed.id, chosen=MessageSelection("crm"))
    assert (seen.oldest, seen.newest) == (START + timedelta(minutes=3), START + timedelta(minutes=70))


def test_ids_and_keys_select_among_the_listed_dead_letters(placed: Pipe):
    store(placed, "dead", range(6), cause="rejected")
    letters = [letter(placed, offset, key="k" if offset % 2 else "") for offset in range(4)]
    assert preview(pipe_id=placed.id, chosen=MessageSelection("crm", ids=("m1", "m2", "nobody"))).count == 2
    assert preview(pipe_id=placed.id, chosen=MessageSelection("crm", key="k")).count == 2
    move = start_redrive(pipe=placed, chosen=MessageSelection("crm", key="k"))
    assert waiting(placed) == [0, 2, 4, 5]
    assert {one.id for one in letters if one.offset % 2} == set(
        DeadLetter.objects.filter(move=move).values_list("id", flat=True)
    )


def test_held_messages_are_selected_by_id_and_key_and_listed_again_after_an_abort(placed: Pipe):
    store(placed, "held", range(6))
    for offset in range(6):
        held(placed, offset, key="k" if offset % 2 else "")
    assert preview(pipe_id=placed.id, chosen=MessageSelection("crm", "held", key="k")).count == 3
    assert preview(pipe_id=placed.id, chosen=MessageSelection("crm", "held", cause="rejected")).count == 0
    move = start_redrive(pipe=placed, chosen=MessageSelection("crm", "held", ids=("m1", "m2", "m5")), through=True)
    assert (move.total, move.what, move.through, waiting(placed, "held")) == (3, "release", True, [0, 3, 4])
    with pytest.raises(NothingToRedriveError):
        start_redrive(pipe=placed, chosen=MessageSelection("crm", "held", ids=("m1",)))
    cancel_redrive(move=move)
    note_progress(progress=progress(move, 2, done=True, moved=1, topic=HELD), now=NOW)
    assert waiting(placed, "held") == [0, 2, 3, 4, 5]
    assert [row.offset for row in HeldMessage.objects.filter(move=move)] == [1]


def test_held_messages_of_an_ordered_destination_are_selected_by_key_or_time(placed: Pipe):
    Destination.objects.update(config={**Destination.objects.get().config, "ordered": True})
    store(placed, "held", range(2))
    held(placed, 0, key="k")
    with pytest.raises(InvalidValue) as refused:
        start_redrive(pipe=placed, chosen=MessageSelection("crm", "held", ids=("m0",)))
    assert refused.value.field == "ids"
    assert start_redrive(pipe=placed, chosen=MessageSelection("crm", "held", key="k")).total == 1


def test_dead_letters_before_transmit_are_counted_apart_and_refused_with_a_remedy(placed: Pipe):
    early = letter(placed, 0, cause="step")
    early.node = "transform:crm"
    early.save()
    letter(placed, 1)
    store(placed, "dead", range(1, 2), cause="rejected")
    seen = preview(pipe_id=placed.id, chosen=MessageSelection("crm"))
    assert (seen.count, seen.unready) == (1, 1)
    with pytest.raises(NothingToRedriveError, match="Fix the pipe's steps"):
        start_redrive(pipe=placed, chosen=MessageSelection("crm", cause="step"))


def test_aborted_redrive_returns_the_messages_it_had_not_reached(placed: Pipe):
    store(placed, "dead", range(6), cause="rejected", minute=5)
    for offset in range(6):
        letter(placed, offset)
    move = start_redrive(pipe=placed, chosen=MessageSelection("crm"))
    note_progress(progress=progress(move, 2, done=False, moved=2), now=NOW)
    assert cancel_redrive(move=move)
    assert not cancel_redrive(move=move)
    note_progress(progress=progress(move, 4, done=True, moved=4), now=NOW)
    move.refresh_from_db()
    assert (move.state, move.moved, move.finished_at, move.version) == ("aborted", 4, NOW, 3)
    assert waiting(placed) == [4, 5]
    assert set(DeadLetter.objects.filter(move=None).values_list("offset", flat=True)) == {4, 5}
    assert preview(pipe_id=placed.id, chosen=MessageSelection("crm")).oldest == START + timedelta(minutes=5)


def test_repeated_progress_after_the_end_changes_nothing(placed: Pipe):
    store(placed, "dead", range(2), cause="rejected")
    move = start_redrive(pipe=placed, chosen=MessageSelection("crm"))
    for _ in range(2):
        note_progress(progress=progress(move, 2, done=True, moved=2), now=NOW)
    move.refresh_from_db()
    assert (move.state, move.version, waiting(placed)) == ("done", 2, [])


def test_redrive_claims_the_oldest_messages_up_to_its_limit(placed: Pipe):
    store(placed, "dead", range(100, 110), cause="rejected", minute=61)
    store(placed, "dead", range(10), cause="rejected")
    move = start_redrive(pipe=placed, chosen=MessageSelection("crm"), most=12)
    assert (move.total, waiting(placed)) == (12, list(range(102, 110)))


def test_held_messages_are_released_when_their_destination_is_active_again(placed: Pipe, alice: User):
    destination = placed.destinations.get()
    assert pause_destination(destination=destination, by=alice)
    store(placed, "held", range(5))
    assert release_leftovers() == 0
    assert resume_destination(destination=destination, by=alice)
    assert release_leftovers() == 1
    store(placed, "held", range(5, 7))  # by a lane that had not read the change yet
    assert release_leftovers() == 0, "one release at a time keeps the order"
    first = Redrive.objects.get()
    note_progress(progress=progress(first, 5, done=True, moved=5, topic=HELD), now=NOW)
    assert release_leftovers() == 1
    assert waiting(placed, "held") == []


def test_paused_pipe_keeps_all_messages_held(placed: Pipe):
    pause_pipe(pipe=placed)
    store(placed, "held", range(5))
    assert release_leftovers() == 0
    (standing,) = delivery_states(pipe=placed)
    assert (standing.holds, standing.held, standing.held_since) == (True, 5, START)
    resume_pipe(pipe=placed)
    assert release_leftovers() == 1


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        (MessageSelection("crm", since=NOW, until=NOW), "until"),
        (MessageSelection("crm", ids=("m",) * 1001), "ids"),
    ],
)
def test_invalid_selection_names_its_field(placed: Pipe, chosen: MessageSelection, field: str):
    with pytest.raises(InvalidValue) as refused:
        start_redrive(pipe=placed, chosen=chosen)
    assert refused.value.field == field


def test_destination_state_survives_a_new_revision(placed: Pipe, alice: User):
    destination = placed.destinations.get()
    pause_destination(destination=destination)
    revision = placed.revisions.get()
    revision.state = "ramping"
    revision.save()
    adopt_live_spec(revision=revision)
    assert Destination.objects.get().state == "paused"
