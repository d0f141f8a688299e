"""Replays of a pipe: list, the page of one, and its actions."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dataplane.ledger.bins import Bin
from mgmt import services
from mgmt.ids import storable
from mgmt.ledger.queries.minutes import DestinationLoss, MinuteLoss
from mgmt.models import Destination, Pipe, Replay
from mgmt.pipes.page_context import pipe_context
from mgmt.replays.presenters import MEANINGS, BackfillLine, ReplayLine, backfill_line, columns_of, replay_line
from mgmt.replays.queries import (
    accounts_of_replays,
    backfills_without_replay,
    replay_account,
    replay_losses,
    replay_timing,
    replay_units,
    replays_of,
)
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, number_of, once, show, viewer_of

MOST: Final = 50
MOST_UNITS: Final = 200
MOST_NAMED: Final = 20  # keys and message ids in the settings of a replay
_LIST_LIVE: Final = {"head": "pipes/base.html", "replays": "replays/replays.html"}
_LIVE: Final = {"head": "pipes/base.html", **dict.fromkeys(("state", "account"), "replays/replay.html")}


@for_members
@require_safe
def replays(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """List the replays of a pipe, newest first; `before` is the id before which the list begins."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    before = storable(request.GET.get("before", ""))
    rows = replays_of(pipe)
    rows = rows.filter(id__lt=before) if before else rows
    get_rows = once(lambda: list(rows[: MOST + 1]))
    context = pipe_context(pipe, "replays") | {
        "before": before,
        "get_lines": once(lambda: _lines(get_rows()[:MOST])),
        "get_backfills": once(partial(_backfills, pipe)),
        "get_older": once(lambda: get_rows()[MOST - 1].id if len(get_rows()) > MOST else ""),
        "curl": as_curl(f"pipes/{pipe.id}/replays/"),
    }
    return show(request, "replays/replays.html", context, tenant=pipe.tenant, live=_LIST_LIVE)


@for_members
@require_safe
def replay(request: HttpRequest, pipe_id: str, replay_id: str) -> HttpResponseBase:
    """Show a replay: state, outcomes by destination, losses, times, settings, and the messages in the bin `bin`.

    `format` exports these messages; `after` is the first lost message shown.
    """
    row = access.get_replay(viewer_of(request), pipe_id, replay_id)
    pipe, chosen = access.get_pipe(viewer_of(request), pipe_id), request.GET.get("bin", "")
    if (kind := request.GET.get("format", "")) in KINDS and chosen in MEANINGS:
        return _export(kind, row, Bin(chosen))
    now, get_account = timezone.now(), once(partial(replay_account, row))
    units, more = replay_units(row, Bin(chosen), MOST_UNITS) if chosen in MEANINGS else ([], 0)
    after = number_of(request.GET.get("after"))
    context = pipe_context(pipe, "replays") | {
        "line": replay_line(row, get_account(), now),
        "now": now,
        "get_account": get_account,
        "get_bins": once(lambda: columns_of(get_account().bins)),
        "get_parts": once(lambda: _parts(get_account())),
        "bad": row.undone_bins,
        "get_sum": once(lambda: [(name, count) for name in MEANINGS if (count := get_account().bins.get(name))]),
        "get_losses": once(lambda: replay_losses(row, first=after) if get_account().loss.lost else None),
        "timing": replay_timing(row),
        "get_held": once(partial(_held, pipe, row)),
        "keys": row.keys[:MOST_NAMED],
        "ids": row.ids[:MOST_NAMED],
        "more_keys": max(0, len(row.keys) - MOST_NAMED),
        "more_ids": max(0, len(row.ids) - MOST_NAMED),
        "chosen": chosen if chosen in MEANINGS else "",
        "meaning": MEANINGS.get(chosen, ""),
        "units": units,
        "more": more,
        "curl": as_curl(f"pipes/{pipe.id}/replays/{row.id}/"),
    }
    return show(request, "replays/replay.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_POST
def pause(request: HttpRequest, pipe_id: str, replay_id: str) -> HttpResponse:
    """Pause a replay; what was sent already is still delivered."""
    return _change(request, pipe_id, replay_id, services.pause_replay, "Replay paused.")


@for_members
@require_POST
def resume(request: HttpRequest, pipe_id: str, replay_id: str) -> HttpResponse:
    """Continue a paused replay where it stopped."""
    return _change(request, pipe_id, replay_id, services.resume_replay, "Replay resumed.")


@for_members
@require_POST
def abort(request: HttpRequest, pipe_id: str, replay_id: str) -> HttpResponse:
    """Abort a replay; what was sent already is still delivered."""
    words = "Stopping the replay. Messages already sent are still delivered."
    return _change(request, pipe_id, replay_id, services.abort_replay, words)


@for_members
@require_POST
def repeat_failed(request: HttpRequest, pipe_id: str, replay_id: str) -> HttpResponse:
    """Start a replay of the messages of an ended one that were not delivered."""
    row = access.get_replay(viewer_of(request), pipe_id, replay_id, access.MOVE_MESSAGES)
    try:
        started = services.repeat_failed(replay=row, by=viewer_of(request), now=timezone.now())
    except services.InvalidValue as exc:
        messages.error(request, f"The messages cannot be repeated: {exc.reason}.", "bad")
        return redirect("console:replay", pipe_id, row.id)
    except services.ServiceError as exc:
        messages.error(request, str(exc), "bad")
        return redirect("console:replay", pipe_id, row.id)
    messages.success(request, f"Repeating the failed messages of {len(started.ids)} events.", "fine")
    return redirect("console:replay", pipe_id, started.id)


def _change(
    request: HttpRequest, pipe_id: str, replay_id: str, action: Callable[..., bool], words: str
) -> HttpResponse:
    """Run an action; report that it changed nothing if the replay has ended or has the state already."""
    row = access.get_replay(viewer_of(request), pipe_id, replay_id, access.MOVE_MESSAGES)
    if action(replay=row, by=viewer_of(request), now=timezone.now()):
        messages.success(request, words, "fine")
    else:
        messages.info(request, f"Nothing was changed: the replay is {row.state}.", "wait")
    return redirect("console:replay", pipe_id, row.id)


def _lines(rows: list[Replay]) -> list[ReplayLine]:
    now, accounts = timezone.now(), accounts_of_replays(rows)
    return [replay_line(row, accounts[row.id], now) for row in rows]


def _backfills(pipe: Pipe) -> list[BackfillLine]:
    now = timezone.now()
    return [backfill_line(row, now) for row in backfills_without_replay(pipe, now)[:MOST]]


def _parts(account: MinuteLoss) -> list[tuple[DestinationLoss, int]]:
    """Return each destination's part with its number of messages, without an empty part before the destinations."""
    parts = [(part, sum(part.bins.values())) for part in account.destinations]
    return [(part, total) for part, total in parts if part.name or total]


def _held(pipe: Pipe, row: Replay) -> list[Destination]:
    """Return the destinations of a running replay that take no messages now."""
    if row.state != Replay.State.RUNNING or row.rehearsal:
        return []
    return list(pipe.destinations.filter(name__in=row.destinations).exclude(state=Destination.State.ACTIVE))


def _export(kind: str, row: Replay, bin_: Bin) -> HttpResponseBase:
    found, _ = replay_units(row, bin_, MOST_ROWS)
    rows = ({**asdict(unit), "bin": str(bin_)} for unit in found)
    columns = ("position", "child", "destination", "bin", *(("last_seen",) if bin_ is Bin.LOST else ()))
    return export(kind, rows, columns, name=f"units-{row.id}")
