"""After any order of adds, redrives, aborts and ends, each offset is in one set, in one redrive, or done."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from pyroaring import BitMap64

from dataplane.names import PartitionKey
from dataplane.tables.redrives import REDRIVES_VERSION, RedriveProgress, format_place
from mgmt.deliveries.queries.message_selection import HOUR_S, MessageSelection
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places, united
from mgmt.deliveries.services.redrives import note_progress
from mgmt.models import Cell, OffsetSet, Pipe, Redrive
from mgmt.services import NothingToRedriveError, cancel_redrive, start_redrive
from tests.support.statements import meanwhile

START_S = 490_000 * HOUR_S
NOW = datetime(2026, 11, 1, tzinfo=UTC)
TOPIC = "penstock.c1.dead.g1"
OPEN = ("running", "aborting")
Spot = tuple[int, int]  # (partition, offset)


class World:
    """Database rows, and a model of their required state."""

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
            where = OffsetSetKey(self.pipe.id, "crm", "dead", cause, TOPIC, partition, self.clock_s // HOUR_S)
            found.append(StoredPosition(where, offset, self.clock_s))
            self.added.add((partition, offset))
        add_places(found)

    def start(self) -> None:
        since = datetime.fromtimestamp(START_S + self.chance.randrange(20_000), UTC)
        chosen = self.chance.choice(
            [
                MessageSelection("crm"),
                MessageSelection("crm", cause="rejected"),
                MessageSelection("crm", since=since, until=since + timedelta(hours=1)),
            ]
        )
        try:
            start_redrive(pipe=self.pipe, chosen=chosen, most=self.chance.randrange(1, 15))
        except NothingToRedriveError:
            return

    def abort(self) -> None:
        if move := self._open_move():
            cancel_redrive(move=move)

    def progress(self) -> None:
        """Report progress on some or all offsets of a redrive; an aborted one ends at any offset."""
        move = self._open_move()
        if move is None:
            return
        places = united(move.taken)
        whole = self.chance.random() < 0.5
        reached = {place: self._reach(move, place, offsets, whole) for place, offsets in places.items()}
        self.done |= {(p[1], o) for p, offsets in places.items() for o in offsets if o < reached[p]}
        done = whole or move.state == "aborting"
        told = {format_place(place): offset for place, offset in reached.items()}
        note_progress(progress=RedriveProgress(REDRIVES_VERSION, move.id, 0, 0, move.total, done, 0, told), now=NOW)

    def _reach(self, move: Redrive, place: PartitionKey, offsets: BitMap64, whole: bool) -> int:
        before = int(move.reached.get(format_place(place), 0))
        return int(offsets.max()) + 1 if whole else max(before, self.chance.randrange(int(offsets.max()) + 2))

    def _open_move(self) -> Redrive | None:
        moves = list(Redrive.objects.filter(state__in=OPEN).order_by("id"))
        return self.chance.choice(moves) if moves else None

    def check(self) -> None:
        in_sets = list(spots(self._sets()))
        in_moves = [
            spot
            for move in Redrive.objects.filter(state__in=OPEN)
            for spot in spots(united(move.taken).items())
            if spot not in self.done
        ]
        everywhere = [*in_sets, *in_moves, *self.done]
        assert len(everywhere) == len(set(everywhere)), "an offset is in two of them"
        assert set(everywhere) == self.added, "an offset is missing, or was never added"
        assert all(row.count for row in OffsetSet.objects.all()), "an empty set remains"

    def _sets(self) -> Iterable[tuple[PartitionKey, BitMap64]]:
        for row in OffsetSet.objects.all():
            offsets = BitMap64.deserialize(bytes(row.offsets))
            assert len(offsets) == row.count
            yield (row.topic, row.partition), offsets


def spots(places: Iterable[tuple[PartitionKey, BitMap64]]) -> Iterable[Spot]:
    for (_topic, partition), offsets in places:
        yield from ((partition, offset) for offset in offsets)


@pytest.mark.parametrize("seed", range(3))
def test_each_offset_is_in_one_set_in_one_redrive_or_done(seed: int, pipe: Pipe):
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    world = World(pipe, random.Random(seed))
    for _ in range(50):
        world.chance.choice([world.add, world.add, world.start, world.abort, world.progress, world.progress])()
        world.check()
    assert Redrive.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", range(2))
def test_offset_added_while_a_redrive_empties_its_set_is_kept(statement: int, pipe: Pipe):
    """Between finding the set's row and locking it, the redrive claims all offsets and the row is deleted."""
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    key = OffsetSetKey(pipe.id, "crm", "dead", "rejected", TOPIC, 0, START_S // HOUR_S)
    with transaction.atomic():
        add_places([StoredPosition(key, 0, START_S)])

    took = meanwhile(
        statement, lambda: start_redrive(pipe=pipe, chosen=MessageSelection("crm")), after="mgmt_offsetset"
    )
    with transaction.atomic(), took:
        add_places([StoredPosition(key, 1, START_S)])
    in_sets = [offset for row in OffsetSet.objects.all() for offset in BitMap64.deserialize(bytes(row.offsets))]
    assert in_sets == [1]
    assert united(Redrive.objects.get().taken) == {(TOPIC, 0): BitMap64([0])}
