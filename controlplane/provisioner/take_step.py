"""What the steps of relocations do. Each may be done again, by two at once, and be cut short anywhere."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from controlplane.interlocks import pauses_of
from controlplane.leases import cell_states
from controlplane.provisioner.act import Hands
from controlplane.provisioner.changing import changing
from controlplane.provisioner.relocating import (
    Finish,
    GiveUp,
    HoldAtTarget,
    NoteEnds,
    NoteLeft,
    Say,
    Step,
    Switch,
    TurnBack,
)
from mgmt.models import Relocation
from mgmt.queries.cells import places_of
from mgmt.services import (
    finish_relocation,
    give_up_relocation,
    hold_at_target,
    switch_pipe,
    turn_back_relocation,
)


def take_step(hands: Hands, step: Step, now: datetime) -> None:
    """Do one step. What the interlocks refuse now is told by the next look."""
    row = Relocation.objects.select_related("pipe").get(id=step.relocation)
    mine = Relocation.objects.filter(id=row.id, state__in=Relocation.UNDER_WAY)
    match step:
        case Say(says=says):
            mine.update(says=says)
        case NoteLeft():
            mine.update(left_at=now)
        case NoteEnds():
            ends = hands.topics.ends(places_of(row.source_id, "ingest"))
            mine.update(ends=[[*place, end] for place, end in ends.items()])
        case GiveUp(why=why):
            give_up_relocation(relocation=row, says=why, now=now)
        case HoldAtTarget():
            hold_at_target(relocation=row, now=now)
        case Switch():
            _change_both(row, "switch", partial(switch_pipe, relocation=row, now=now), now)
        case Finish():
            _change_both(row, "finish", partial(finish_relocation, relocation=row, now=now), now, protective=True)
        case TurnBack(why=why):
            back = partial(turn_back_relocation, relocation=row, why=why, now=now)
            _change_both(row, "turn back", back, now, protective=True)


def _change_both(
    row: Relocation, what: str, make: Callable[[], bool], now: datetime, *, protective: bool = False
) -> None:
    """Make the change under the leases of both cells. An unwell source never keeps a pipe from leaving it."""
    both = {row.source_id: True, row.target_id: protective}
    with changing(both, f"{what} of {row.pipe_id}", now) as ours:
        if ours and (protective or not _is_paused(row.source_id, now)):
            make()


def _is_paused(cell: str, now: datetime) -> bool:
    """Asked here, for a protective take does not ask: an unwell cell may be left, a paused one not."""
    return any(pauses_of("provision", cell_states(now, [cell])[cell]))
