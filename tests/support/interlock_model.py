"""A small model of the interlocks: three controllers, one of them in two processes, one cell, all possible actions.

A world consists of the rows, the memory of each process, and, apart from both, the truth: which process acquired
the lease last, and how long it may rely on it. `controlplane.interlocks` itself decides about each lease; the rest
follows `controlplane.leases`, which the random walk compares with this model. A lease lasts for `LASTS` turns.
"""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from controlplane.interlocks import CellState, ControllerName, LeaseView, PauseView, VerdictView, refusal_of

CONTROLLERS: Final[tuple[ControllerName, ...]] = ("provision", "deploy", "scale")
PROCESSES: Final[tuple[ControllerName, ...]] = (*CONTROLLERS, "provision")  # a stalled process, and its successor
PAUSABLE: Final = ("provision", "scale")  # both kinds: a pause of `scale` stops even protective changes
VERDICTS: Final = ("stable", "unstable", "unknown")
LASTS: Final = 2
IDLE: Final = -1
NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
Kind = Literal["tick", "verdict", "pause", "resume", "take", "protect", "write", "keep", "give back", "crash"]


class Action(NamedTuple):
    """One action: on the world, or by the process of that number."""

    kind: Kind
    process: int = IDLE
    to: str = ""

    def __str__(self) -> str:
        who = f"{PROCESSES[self.process]}#{self.process} " if self.process != IDLE else ""
        return f"{who}{self.kind} {self.to}".strip()


class Process(NamedTuple):
    """Memory of a process: its lease token. `newest`: in truth, no other process has acquired the lease since."""

    token: int = IDLE
    newest: bool = False


class World(NamedTuple):
    """Rows (`verdict` to `fence`), truth (`relied_on`: turns left for the newest holder), memories."""

    verdict: str = "stable"
    paused: frozenset[str] = frozenset()
    holder: str = ""
    left: int = 0
    token: int = 0
    fence: int = 0
    relied_on: int = 0
    processes: tuple[Process, ...] = (Process(),) * len(PROCESSES)


class Rules:
    """Rules of leases. An action returns if it was granted, and the resulting world."""

    def may(self, world: World, controller: ControllerName, *, protective: bool) -> bool:
        """Return True if the interlocks let the controller acquire the lease."""
        lease = (world.holder, world.left > 0)
        return _may(controller, world.verdict, world.paused, lease, protective)

    def take(self, world: World, process: int, *, protective: bool) -> tuple[bool, World]:
        """Model `leases.acquire`."""
        if not self.may(world, PROCESSES[process], protective=protective):
            return False, world
        others = [one._replace(newest=False) for one in world.processes]
        token = self.next_token(world)
        others[process] = Process(token, newest=True)
        fence = self.raised(world.fence, token)
        return True, world._replace(
            holder=PROCESSES[process], left=LASTS, token=token, fence=fence, relied_on=LASTS, processes=tuple(others)
        )

    def next_token(self, world: World) -> int:
        """Return the token of the next lease."""
        return world.token + 1

    def raised(self, fence: int, token: int) -> int:
        """Return the fence after a lease with this token was acquired."""
        return max(fence, token)

    def write(self, world: World, process: int) -> tuple[bool, World]:
        """Model `leases.fenced`."""
        token = world.processes[process].token
        return (True, world._replace(fence=token)) if world.fence <= token else (False, world)

    def holds(self, world: World, process: int) -> bool:
        """Return True if the row still belongs to this process."""
        return bool(world.holder) and world.token == world.processes[process].token

    def keep(self, world: World, process: int) -> tuple[bool, World]:
        """Model `leases.renew`."""
        if not self.holds(world, process):
            return False, world
        return True, world._replace(left=LASTS, relied_on=LASTS if world.processes[process].newest else world.relied_on)

    def give_back(self, world: World, process: int) -> tuple[bool, World]:
        """Model `leases.release`."""
        mine = world.processes[process]
        after = forgotten(world, process)._replace(relied_on=0 if mine.newest else world.relied_on)
        return (True, after._replace(holder="")) if self.holds(world, process) else (False, after)


def forgotten(world: World, process: int) -> World:
    """Return the world after the process forgot its lease; the rows are unchanged."""
    processes = list(world.processes)
    processes[process] = Process()
    return world._replace(processes=tuple(processes))


def actions(world: World) -> Iterator[Action]:
    """Yield every action that may happen next."""
    yield Action("tick")
    yield from (Action("verdict", to=state) for state in VERDICTS if state != world.verdict)
    for controller in PAUSABLE:
        yield Action("resume" if controller in world.paused else "pause", to=controller)
    for number, process in enumerate(world.processes):
        kinds: tuple[Kind, ...] = ("take", "protect")
        if process.token != IDLE:
            kinds = ("write", "keep", "give back", "crash")
        yield from (Action(kind, number) for kind in kinds)


def happen(rules: Rules, world: World, action: Action) -> tuple[bool, World]:
    """Return if the action was granted, and the resulting world."""
    match action.kind:
        case "take" | "protect":
            return rules.take(world, action.process, protective=action.kind == "protect")
        case "write":
            return rules.write(world, action.process)
        case "keep":
            return rules.keep(world, action.process)
        case "give back":
            return rules.give_back(world, action.process)
    return True, _passed(world, action)


def _passed(world: World, action: Action) -> World:
    """Return the world after an action that needs no permission."""
    match action.kind:
        case "verdict":
            return world._replace(verdict=action.to)
        case "pause":
            return world._replace(paused=world.paused | {action.to})
        case "resume":
            return world._replace(paused=world.paused - {action.to})
        case "crash":
            return forgotten(world, action.process)
    return world._replace(left=max(0, world.left - 1), relied_on=max(0, world.relied_on - 1))


def wrong(world: World, action: Action, granted: bool, after: World) -> str:
    """Return the violation that the action caused, "" if none. Ignores tokens and fences: only truth counts."""
    if action.kind in ("take", "protect"):
        return _wrong_take(world, PROCESSES[action.process], action.kind == "protect", granted)
    if action.kind not in ("write", "keep", "give back"):
        return ""
    newest = world.processes[action.process].newest
    if action.kind == "write" and granted != newest:
        return (
            "somebody wrote after another had taken the cell" if granted else "who took the cell last could not write"
        )
    if action.kind != "write" and not newest and (after.holder, after.left) != (world.holder, world.left):
        return f"{action.kind} of one who lost the lease changed another's"
    return ""


def _wrong_take(world: World, controller: ControllerName, protective: bool, granted: bool) -> str:
    paused = controller in world.paused and not (protective and controller != "scale")
    unwell = world.verdict != "stable" and not protective
    if granted and world.relied_on:
        return "two changed the cell at once"
    if granted and (paused or unwell):
        return "a controller that was paused took the cell" if paused else "a cell that is not stable was taken"
    if not granted and not (world.relied_on or paused or unwell):
        return "a lease was refused although nothing stood against it"
    return ""


def stuck(rules: Rules, world: World) -> str:
    """Return the controller that is locked out even of a stable cell without pauses and leases; "" if none."""
    calm = world._replace(verdict="stable", paused=frozenset())
    for _ in range(LASTS):
        _, calm = happen(rules, calm, Action("tick"))
    for controller in CONTROLLERS:
        if not rules.may(calm, controller, protective=False):
            return f"{controller} can never take the cell again"
    return ""


class Explored(Struct, frozen=True):
    """Number of worlds that were reached, and the shortest path to a violation, if there is one."""

    worlds: int
    steps: int
    violation: str = ""
    way: list[str] = []


def explore(rules: Rules) -> Explored:
    """Explore every reachable world once, in breadth-first order."""
    start = World()
    came: dict[World, tuple[World, Action] | None] = {start: None}
    waiting, steps = deque([start]), 0
    while waiting:
        world = waiting.popleft()
        if said := stuck(rules, world):
            return Explored(len(came), steps, said, _way(came, world))
        for action in actions(world):
            granted, after = happen(rules, world, action)
            steps += 1
            if said := wrong(world, action, granted, after):
                return Explored(len(came), steps, said, [*_way(came, world), str(action)])
            after = ranked(after)
            if after not in came:
                came[after] = (world, action)
                waiting.append(after)
    return Explored(len(came), steps)


def ranked(world: World) -> World:
    """Return the same world with the smallest tokens of the same order: only their order matters."""
    tokens = sorted({world.token, world.fence, *(one.token for one in world.processes if one.token != IDLE)})
    rank = {token: number for number, token in enumerate(tokens)} | {IDLE: IDLE}
    processes = tuple(Process(rank[one.token], one.newest) for one in world.processes)
    return world._replace(token=rank[world.token], fence=rank[world.fence], processes=processes)


def _way(came: dict[World, tuple[World, Action] | None], world: World) -> list[str]:
    way: list[str] = []
    while (step := came[world]) is not None:
        world, action = step
        way.append(str(action))
    return way[::-1]


@cache
def _may(
    controller: ControllerName, verdict: str, paused: frozenset[str], lease: tuple[str, bool], protective: bool
) -> bool:
    holder, runs = lease
    state = CellState(
        cell="c1",
        pauses=[PauseView(one, "admin", "x") for one in sorted(paused)],
        lease=LeaseView(holder, "x", NOW + timedelta(seconds=1 if runs else 0)),
        verdict=VerdictView(verdict, [], NOW, NOW),
        now=NOW,
    )
    return refusal_of(controller, state, protective=protective) is None
