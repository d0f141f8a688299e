"""Attempts: the list with its filters and its export, and one message with every try of it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from dataplane.ledger.units import format_position, parse_position
from mgmt import access
from mgmt.console.causes import BY_CODE
from mgmt.console.export import KINDS, MOST_ROWS, export
from mgmt.console.pages import for_members, once, part_of, show, viewer_of
from mgmt.console.told import told
from mgmt.console.views.pipe import shared
from mgmt.console.wording import BIN_COLOURS, BINS
from mgmt.queries.attempts import OUTCOMES, AttemptLine, Filter, attempts_of, latest_attempts
from mgmt.queries.ledger import accounts

MOST: Final = 100
MOST_TRIES: Final = 500
_COLUMNS: Final = (
    "at", "message_id", "position", "destination", "revision", "number", "outcome", "status", "reason", "address",
    "total_us", "split", "next_at", "gives_up_at", "answer",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where one message is, at one destination."""

    destination: str
    bin: str
    colour: str
    meaning: str


@for_members
@require_safe
def attempts(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """The newest attempts; the filters stand in the URL, `format` makes a file of what they let through."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    wanted = _wanted(request)
    if (kind := request.GET.get("format", "")) in KINDS:
        lines = latest_attempts(pipe_id=pipe.id, most=MOST_ROWS, wanted=wanted)
        return export(kind, _rows(lines), _COLUMNS, name=f"attempts-{pipe.id}")
    before = request.GET.get("before", "")
    get_lines = once(lambda: latest_attempts(pipe_id=pipe.id, most=MOST + 1, wanted=wanted, before=_mark(before)))
    filters = {name: value for name, value in asdict(wanted).items() if value}
    context = shared(pipe, "attempts") | {
        "outcomes": OUTCOMES,
        "causes": sorted(BY_CODE),
        "wanted": wanted,
        "filters": filters,
        "query": urlencode(filters),
        "before": before,
        "destinations": sorted(pipe.destinations.values_list("name", flat=True)),
        "get_attempts": once(lambda: told(get_lines()[:MOST])),
        "get_older": once(lambda: _older(get_lines(), filters)),
        "most_rows": MOST_ROWS,
    }
    template, part = part_of(request, {"attempts": "attempts.html"}) or ("attempts.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


@for_members
@require_safe
def message(request: HttpRequest, pipe_id: str, position: str) -> HttpResponse:
    """One message: where it is now at each destination, and every try that is known."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    try:
        place = parse_position(position)
    except ValueError as exc:
        raise Http404 from exc
    lines = attempts_of(pipe_id=pipe.id, position=place, most=MOST_TRIES)
    bucket = lines[0].bucket if lines else _bucket(request.GET.get("minute", ""))
    places = _places(pipe.id, bucket, place) if bucket is not None else []
    if not lines and not places:
        raise Http404
    context = shared(pipe, "attempts") | {
        "position": format_position(place),
        "message_id": lines[0].message_id if lines else "",
        "bucket": bucket,
        "places": places,
        "attempts": told(lines),
    }
    template, part = part_of(request, {"tries": "message.html"}) or ("message.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


def _places(pipe_id: str, bucket: int, position: int) -> list[Place]:
    account = accounts(pipe_id, [bucket])[bucket]
    found = []
    for where, bins in {"": account.upstream, **account.destinations}.items():
        found += [
            Place(where, str(bin_), BIN_COLOURS.get(bin_, "off"), BINS[bin_])
            for bin_, units in bins.items()
            if any(position in positions for _, positions in units.items())
        ]
    return found


def _wanted(request: HttpRequest) -> Filter:
    """The filters in the URL; a value that no attempt can have is taken as none."""
    outcome, cause = request.GET.get("outcome", ""), request.GET.get("cause", "")
    return Filter(
        outcome=outcome if outcome in OUTCOMES else "",
        destination=_clean(request.GET.get("destination", "")),
        cause=cause if cause in BY_CODE else "",
        message=_clean(request.GET.get("message", "")),
    )


def _clean(text: str) -> str:
    return text.strip().replace("\x00", "")[:100]


def _older(lines: list[AttemptLine], filters: dict[str, str]) -> str:
    """The query of the next page; "" on the last one."""
    if len(lines) <= MOST:
        return ""
    last = lines[MOST - 1]
    return urlencode({**filters, "before": f"{int(last.at.timestamp() * 1_000_000)}-{last.id}"})


def _mark(before: str) -> tuple[datetime, int] | None:
    at_us, _, row_id = before.partition("-")
    if not (at_us.isdecimal() and row_id.isdecimal() and len(at_us) < 18 and len(row_id) < 18):
        return None
    return datetime.fromtimestamp(int(at_us) // 1_000_000, UTC).replace(microsecond=int(at_us) % 1_000_000), int(row_id)


def _bucket(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _rows(lines: list[AttemptLine]) -> Iterator[dict[str, Any]]:
    for line in lines:
        row = {name: getattr(line, name) for name in _COLUMNS}
        yield row | {"split": " ".join(f"{name.replace(' ', '_')}={us}" for name, us in line.split)}
