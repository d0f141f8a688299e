"""Held and dead messages are taken by exactly one move, in order, and come back if it is aborted."""

from datetime import UTC, datetime, timedelta

import pytest
from pyroaring import BitMap64

from dataplane.tables.moves import MOVES_VERSION, MoveProgress
from mgmt.models import Cell, DeadLetter, Destination, HeldMessage, Move, OffsetSet, Pipe, User
from mgmt.queries.delivery import standings
from mgmt.queries.places import Chosen, preview
from mgmt.services import (
    InvalidValue,
    NothingToMove,
    abort_move,
    adopt_live_spec,
    pause_destination,
    pause_pipe,
    resume_destination,
    resume_pipe,
    start_move,
)
from mgmt.services.moves import note_progress, release_leftovers
from mgmt.services.places import Found, SetId, add_places, united

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
        Found(SetId(pipe.id, "crm", kind, cause, topic, partition, at_s // 3600), offset, at_s) for offset in offsets
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


def progress(move: Move, reached: int, *, done: bool, moved: int = 0, topic: str = DEAD) -> MoveProgress:
    return MoveProgress(MOVES_VERSION, move.id, moved, 0, move.total, done, 0, {f"{topic}/0": reached})


def waiting(pipe: Pipe, kind: str = "dead") -> list[int]:
    rows = OffsetSet.objects.filter(pipe_id=pipe.id, kind=kind)
    return sorted(offset for row in rows for offset in BitMap64.deserialize(bytes(row.offsets)))


def test_a_redrive_takes_what_was_chosen_and_a_second_one_finds_nothing(placed: Pipe, alice: User):
    store(placed, "dead", range(10), cause="rejected")
    store(placed, "dead", range(10, 14), cause="gave-up")
    chosen = Chosen("crm", cause="rejected")
    assert preview(pipe_id=placed.id, chosen=chosen).count == 10
    move = start_move(pipe=placed, chosen=chosen, by=alice)
    assert (move.total, move.what, waiting(placed)) == (10, "redrive", [10, 11, 12, 13])
    assert united(move.taken) == {(DEAD, 0): BitMap64(range(10))}
    with pytest.raises(NothingToMove):
        start_move(pipe=placed, chosen=chosen)


def test_a_choice_by_time_takes_whole_minutes(placed: Pipe):
    store(placed, "dead", range(5), cause="rejected", minute=3)
    store(placed, "dead", range(5, 9), cause="rejected", minute=7)
    store(placed, "dead", range(9, 12), cause="rejected", minute=70)

    def count(since: int | None, until: int | None) -> int:
        first, last = (None if at is None else START + timedelta(minutes=at) for at in (since, until))
        return preview(pipe_id=placed.id, chosen=Chosen("crm", since=first, until=last)).count

    assert [count(None, None), count(4, None), count(None, 4), count(3, 7), count(8, 70), count(8, 71)] == [
        12,
        7,
        5,
        5,
        0,
        3,
    ]
    seen = preview(pipe_id=placed.id, chosen=Chosen("crm"))
    assert (seen.oldest, seen.newest) == (START + timedelta(minutes=3), START + timedelta(minutes=70))


def test_ids_and_keys_choose_among_the_listed_dead_letters(placed: Pipe):
    store(placed, "dead", range(6), cause="rejected")
    letters = [letter(placed, offset, key="k" if offset % 2 else "") for offset in range(4)]
    assert preview(pipe_id=placed.id, chosen=Chosen("crm", ids=("m1", "m2", "nobody"))).count == 2
    assert preview(pipe_id=placed.id, chosen=Chosen("crm", key="k")).count == 2
    move = start_move(pipe=placed, chosen=Chosen("crm", key="k"))
    assert waiting(placed) == [0, 2, 4, 5]
    assert {one.id for one in letters if one.offset % 2} == set(
        DeadLetter.objects.filter(move=move).values_list("id", flat=True)
    )


def test_held_messages_are_chosen_by_id_and_key_and_listed_again_if_it_is_aborted(placed: Pipe):
    store(placed, "held", range(6))
    for offset in range(6):
        held(placed, offset, key="k" if offset % 2 else "")
    assert preview(pipe_id=placed.id, chosen=Chosen("crm", "held", key="k")).count == 3
    assert preview(pipe_id=placed.id, chosen=Chosen("crm", "held", cause="rejected")).count == 0
    move = start_move(pipe=placed, chosen=Chosen("crm", "held", ids=("m1", "m2", "m5")), through=True)
    assert (move.total, move.what, move.through, waiting(placed, "held")) == (3, "release", True, [0, 3, 4])
    with pytest.raises(NothingToMove):
        start_move(pipe=placed, chosen=Chosen("crm", "held", ids=("m1",)))
    abort_move(move=move)
    note_progress(progress=progress(move, 2, done=True, moved=1, topic=HELD), now=NOW)
    assert waiting(placed, "held") == [0, 2, 3, 4, 5]
    assert [row.offset for row in HeldMessage.objects.filter(move=move)] == [1]


def test_where_order_is_kept_held_messages_are_chosen_by_key_or_time(placed: Pipe):
    Destination.objects.update(config={**Destination.objects.get().config, "ordered": True})
    store(placed, "held", range(2))
    held(placed, 0, key="k")
    with pytest.raises(InvalidValue) as refused:
        start_move(pipe=placed, chosen=Chosen("crm", "held", ids=("m0",)))
    assert refused.value.field == "ids"
    assert start_move(pipe=placed, chosen=Chosen("crm", "held", key="k")).total == 1


def test_what_died_before_it_was_ready_is_counted_apart_and_refused_with_what_to_do(placed: Pipe):
    early = letter(placed, 0, cause="step")
    early.node = "transform:crm"
    early.save()
    letter(placed, 1)
    store(placed, "dead", range(1, 2), cause="rejected")
    seen = preview(pipe_id=placed.id, chosen=Chosen("crm"))
    assert (seen.count, seen.unready) == (1, 1)
    with pytest.raises(NothingToMove, match="Mend the pipe's steps"):
        start_move(pipe=placed, chosen=Chosen("crm", cause="step"))


def test_an_aborted_move_gives_back_what_it_had_not_reached(placed: Pipe):
    store(placed, "dead", range(6), cause="rejected", minute=5)
    for offset in range(6):
        letter(placed, offset)
    move = start_move(pipe=placed, chosen=Chosen("crm"))
    note_progress(progress=progress(move, 2, done=False, moved=2), now=NOW)
    assert abort_move(move=move)
    assert not abort_move(move=move)
    note_progress(progress=progress(move, 4, done=True, moved=4), now=NOW)
    move.refresh_from_db()
    assert (move.state, move.moved, move.finished_at, move.version) == ("aborted", 4, NOW, 3)
    assert waiting(placed) == [4, 5]
    assert set(DeadLetter.objects.filter(move=None).values_list("offset", flat=True)) == {4, 5}
    assert preview(pipe_id=placed.id, chosen=Chosen("crm")).oldest == START + timedelta(minutes=5)


def test_progress_heard_again_after_the_end_changes_nothing(placed: Pipe):
    store(placed, "dead", range(2), cause="rejected")
    move = start_move(pipe=placed, chosen=Chosen("crm"))
    for _ in range(2):
        note_progress(progress=progress(move, 2, done=True, moved=2), now=NOW)
    move.refresh_from_db()
    assert (move.state, move.version, waiting(placed)) == ("done", 2, [])


def test_a_move_takes_the_oldest_when_there_are_more_than_it_may(placed: Pipe):
    store(placed, "dead", range(100, 110), cause="rejected", minute=61)
    store(placed, "dead", range(10), cause="rejected")
    move = start_move(pipe=placed, chosen=Chosen("crm"), most=12)
    assert (move.total, waiting(placed)) == (12, list(range(102, 110)))


def test_what_was_held_is_released_when_its_destination_is_active_again(placed: Pipe, alice: User):
    destination = placed.destinations.get()
    assert pause_destination(destination=destination, by=alice)
    store(placed, "held", range(5))
    assert release_leftovers() == 0
    assert resume_destination(destination=destination, by=alice)
    assert release_leftovers() == 1
    store(placed, "held", range(5, 7))  # by a lane that had not heard of it yet
    assert release_leftovers() == 0, "one release at a time keeps the order"
    first = Move.objects.get()
    note_progress(progress=progress(first, 5, done=True, moved=5, topic=HELD), now=NOW)
    assert release_leftovers() == 1
    assert waiting(placed, "held") == []


def test_a_paused_pipe_keeps_everything_held(placed: Pipe):
    pause_pipe(pipe=placed)
    store(placed, "held", range(5))
    assert release_leftovers() == 0
    (standing,) = standings(pipe=placed)
    assert (standing.holds, standing.held, standing.held_since) == (True, 5, START)
    resume_pipe(pipe=placed)
    assert release_leftovers() == 1


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        (Chosen("crm", since=NOW, until=NOW), "until"),
        (Chosen("crm", ids=("m",) * 1001), "ids"),
    ],
)
def test_a_choice_that_cannot_be_made_names_its_field(placed: Pipe, chosen: Chosen, field: str):
    with pytest.raises(InvalidValue) as refused:
        start_move(pipe=placed, chosen=chosen)
    assert refused.value.field == field


def test_the_state_of_a_destination_outlives_a_new_revision(placed: Pipe, alice: User):
    destination = placed.destinations.get()
    pause_destination(destination=destination)
    revision = placed.revisions.get()
    revision.state = "ramping"
    revision.save()
    adopt_live_spec(revision=revision)
    assert Destination.objects.get().state == "paused"
