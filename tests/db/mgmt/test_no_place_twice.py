"""Whatever is added, moved, aborted and finished in whatever order: each place is in one set, in one move, or done."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from pyroaring import BitMap64

from dataplane.tables.moves import MOVES_VERSION, MoveProgress, format_place
from mgmt.models import Cell, Move, OffsetSet, Pipe
from mgmt.queries.places import HOUR_S, Chosen, Place
from mgmt.services import NothingToMove, abort_move, start_move
from mgmt.services.moves import note_progress
from mgmt.services.places import Found, SetId, add_places, united
from tests.rig.statements import meanwhile

START_S = 490_000 * HOUR_S
NOW = datetime(2026, 11, 1, tzinfo=UTC)
TOPIC = "penstock.c1.dead.g1"
OPEN = ("running", "aborting")
Spot = tuple[int, int]  # (partition, offset)


class World:
    """The rows, and beside them what must be true of them."""

    def __init__(self, pipe: Pipe, chance: random.Random) -> None:
        self.pipe, self.chance = pipe, chance
        self.next_offset = [0, 0]
        self.clock_s = START_S
        self.added: set[Spot] = set()
        self.done: set[Spot] = set()

    def add(self) -> None:
        self.clock_s += self.chance.randrange(1_500)
        found = []
        for _ in range(self.chance.randrange(1, 8)):
            partition = self.chance.randrange(2)
            offset, self.next_offset[partition] = self.next_offset[partition], self.next_offset[partition] + 1
            cause = self.chance.choice(["rejected", "expired"])
            where = SetId(self.pipe.id, "crm", "dead", cause, TOPIC, partition, self.clock_s // HOUR_S)
            found.append(Found(where, offset, self.clock_s))
            self.added.add((partition, offset))
        add_places(found)

    def start(self) -> None:
        since = datetime.fromtimestamp(START_S + self.chance.randrange(20_000), UTC)
        chosen = self.chance.choice(
            [
                Chosen("crm"),
                Chosen("crm", cause="rejected"),
                Chosen("crm", since=since, until=since + timedelta(hours=1)),
            ]
        )
        try:
            start_move(pipe=self.pipe, chosen=chosen, most=self.chance.randrange(1, 15))
        except NothingToMove:
            return

    def abort(self) -> None:
        if move := self._open_move():
            abort_move(move=move)

    def progress(self) -> None:
        """Some of its places are done; with luck all, and an aborted one ends anywhere."""
        move = self._open_move()
        if move is None:
            return
        places = united(move.taken)
        whole = self.chance.random() < 0.5
        reached = {place: self._reach(move, place, offsets, whole) for place, offsets in places.items()}
        self.done |= {(p[1], o) for p, offsets in places.items() for o in offsets if o < reached[p]}
        done = whole or move.state == "aborting"
        told = {format_place(place): offset for place, offset in reached.items()}
        note_progress(progress=MoveProgress(MOVES_VERSION, move.id, 0, 0, move.total, done, 0, told), now=NOW)

    def _reach(self, move: Move, place: Place, offsets: BitMap64, whole: bool) -> int:
        before = int(move.reached.get(format_place(place), 0))
        return int(offsets.max()) + 1 if whole else max(before, self.chance.randrange(int(offsets.max()) + 2))

    def _open_move(self) -> Move | None:
        moves = list(Move.objects.filter(state__in=OPEN).order_by("id"))
        return self.chance.choice(moves) if moves else None

    def check(self) -> None:
        in_sets = list(spots(self._sets()))
        in_moves = [
            spot
            for move in Move.objects.filter(state__in=OPEN)
            for spot in spots(united(move.taken).items())
            if spot not in self.done
        ]
        everywhere = [*in_sets, *in_moves, *self.done]
        assert len(everywhere) == len(set(everywhere)), "a place is in two of them"
        assert set(everywhere) == self.added, "a place is gone, or was never there"
        assert all(row.count for row in OffsetSet.objects.all()), "an empty set stays"

    def _sets(self) -> Iterable[tuple[Place, BitMap64]]:
        for row in OffsetSet.objects.all():
            offsets = BitMap64.deserialize(bytes(row.offsets))
            assert len(offsets) == row.count
            yield (row.topic, row.partition), offsets


def spots(places: Iterable[tuple[Place, BitMap64]]) -> Iterable[Spot]:
    for (_topic, partition), offsets in places:
        yield from ((partition, offset) for offset in offsets)


@pytest.mark.parametrize("seed", range(3))
def test_each_place_is_in_one_set_in_one_move_or_done(seed: int, pipe: Pipe):
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    world = World(pipe, random.Random(seed))
    for _ in range(50):
        world.chance.choice([world.add, world.add, world.start, world.abort, world.progress, world.progress])()
        world.check()
    assert Move.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", range(2))
def test_what_comes_while_somebody_takes_the_last_of_its_set_is_kept(statement: int, pipe: Pipe):
    """Between finding the set's row and locking it: the move takes all that there is, and the row goes."""
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    key = SetId(pipe.id, "crm", "dead", "rejected", TOPIC, 0, START_S // HOUR_S)
    with transaction.atomic():
        add_places([Found(key, 0, START_S)])

    took = meanwhile(statement, lambda: start_move(pipe=pipe, chosen=Chosen("crm")), after="mgmt_offsetset")
    with transaction.atomic(), took:
        add_places([Found(key, 1, START_S)])
    in_sets = [offset for row in OffsetSet.objects.all() for offset in BitMap64.deserialize(bytes(row.offsets))]
    assert in_sets == [1]
    assert united(Move.objects.get().taken) == {(TOPIC, 0): BitMap64([0])}
