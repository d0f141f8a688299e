"""Template filters that format figures: durations, counts, rates, sizes and shares. Presentation only."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dataplane.ledger.breakdown import Slice
from dataplane.plan.outbound import address_of
from dataplane.spec import destination_of
from dataplane.tables.quotas import QuotaKind
from mgmt.deliveries.cause_wording import cause_in_words, failure_in_words
from mgmt.deliveries.presenters import alert_words as words_of_alert
from mgmt.ledger.queries.timing import SLICE_NAMES
from mgmt.models import Alert
from mgmt.pipes.editor.dry_run import pretty as pretty_body
from mgmt.web.sorting import SortOrder

register = template.Library()
_NARROW: Final = "\u202f"  # narrow no-break space: groups digits, and keeps a number and its unit on one line
_FORMS: Final = {"minute": "%H:%M", "second": "%H:%M:%S", "full": "%Y-%m-%d %H:%M:%S", "exact": "%H:%M:%S"}
_BAR, _SPARK = 5, 16  # width of a bar with its gap, and height of a sparkline, in pixels
# Durations below the limit in microseconds: the unit in microseconds, digits after the point, and its name.
_DURATIONS: Final[tuple[tuple[float, int, int, str], ...]] = (
    (10_000, 1_000, 1, "ms"),
    (1_000_000, 1_000, 0, "ms"),
    (120_000_000, 1_000_000, 1, "s"),
    (7_200_000_000, 60_000_000, 0, "min"),
    (172_800_000_000, 3_600_000_000, 1, "h"),
    (float("inf"), 86_400_000_000, 0, "d"),
)
_SLICE_COLOURS: Final = {
    "ingest": "hop-1",
    "normalize": "hop-2",
    "enrich": "hop-5",
    "route": "hop-6",
    "transform": "hop-3",
    "transmit": "hop-4",
    "lake": "hop-4",
    SLICE_NAMES[Slice.TRANSMIT_QUEUE]: "hop-wait-2",
    SLICE_NAMES[Slice.DESTINATION_QUEUE]: "hop-wait-3",
    SLICE_NAMES[Slice.RETRY]: "hop-retry",
    SLICE_NAMES[Slice.HELD]: "hop-held",
    SLICE_NAMES[Slice.DEAD_LETTER]: "hop-dead",
}


@register.filter
def duration(us: object) -> str:
    """Format microseconds: `<0.1 ms`, `0.4 ms`, `38 ms`, `1.2 s`, `3 min`, `5.5 h`, `3 d`; a dash without any."""
    if not isinstance(us, int):
        return "-"
    if 0 < abs(us) < 50:
        return f"<0.1{_NARROW}ms"
    _, unit_us, digits, name = next(unit for unit in _DURATIONS if abs(us) < unit[0])
    return f"{us / unit_us:.{digits}f}{_NARROW}{name}"


@register.filter
def lag(us: object) -> str:
    """Format a lag in microseconds; a negative one, from a source's clock ahead of ours, is shown as 0."""
    return duration(max(0, us) if isinstance(us, int) else us)


@register.filter
def cpu_s(us: int) -> str:
    """Format CPU microseconds as seconds, without the unit, for columns of figures."""
    seconds = us / 1_000_000
    return count(round(seconds)) if seconds >= 1_000 else f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


@register.filter
def size(size_bytes: int) -> str:
    """Format bytes in the decimal unit with one to three digits before the point."""
    amount, units = float(size_bytes), iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while amount >= 999.5 and unit != "TB":
        amount, unit = amount / 1_000, next(units)
    return f"{amount:.0f}{_NARROW}{unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f}{_NARROW}{unit}"


@register.filter
def quota(amount: int, kind: QuotaKind) -> str:
    """Format an amount of a kind of quota: bytes as a size, other units as a count."""
    if kind.unit in ("bytes", "bytes/s"):
        return f"{size(amount)}/s" if kind.unit == "bytes/s" else size(amount)
    return count(amount)


@register.filter
def took(us: int) -> str:
    """Format a short duration: in µs below 1 ms."""
    return f"{us}{_NARROW}µs" if us < 1_000 else duration(us)


@register.filter
def count(number: object) -> str:
    """Format a whole number in groups of three digits; a dash for a missing value."""
    return f"{number:,}".replace(",", _NARROW) if isinstance(number, int) else "-"


@register.filter
def address(config: Mapping[str, Any]) -> str:
    """Return a destination's URL, or a description of one that Penstock stores itself."""
    return address_of(destination_of(config))


@register.filter
def seconds(number: float) -> str:
    """Format seconds of a setting in the largest unit that divides them evenly."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if number >= size and not number % size:
            return f"{number // size:.0f}{_NARROW}{unit}"
    return f"{number:g}{_NARROW}s"


def plain(value: float | None) -> str:
    """Format a number for a script; "" without a value."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


@register.filter
def rate(per_s: float | None) -> str:
    """Format events per second, with one decimal below 10; a dash without a measurement."""
    if per_s is None:
        return "-"
    if 0 < per_s < 0.05:
        return "<0.1"
    return f"{per_s:.1f}" if 0 < per_s < 10 else count(round(per_s))


@register.filter
def share(value: float | None) -> str:
    """Format a fraction as a percentage."""
    return "-" if value is None else f"{value * 100:.1f}{_NARROW}%"


@register.filter
def delivered_share(value: float | None) -> str:
    """Format a share of delivered messages as a percentage; 100 % means all of them."""
    if value is None:
        return "-"
    return f"100{_NARROW}%" if value == 1 else f">{_NARROW}99.9{_NARROW}%" if value > 0.9995 else share(value)


@register.filter
def loss(value: float) -> str:
    """Format a share of lost messages as a percentage; a loss is never shown as zero."""
    return f"<{_NARROW}0.1{_NARROW}%" if 0 < value < 0.001 else share(value)


@register.filter
def failure(reason: str, status: int) -> str:
    """Return an attempt's reason as one line of text."""
    words, detail = failure_in_words(reason, status)
    return f"{words} ({detail})" if detail else words


@register.filter
def cause_words(cause: str) -> str:
    """Return a cause as a phrase."""
    return cause_in_words(cause)


@register.filter
def alert_words(alert: Alert) -> str:
    """Return what an alert is about, as a phrase within a sentence: `returned 401`."""
    words = words_of_alert(alert)
    return words[:1].lower() + words[1:]


@register.filter
def pretty(body: str) -> str:
    """Indent a JSON body; return any other text unchanged."""
    return pretty_body(body)


@register.filter
def of(counts: dict[str, int], name: str) -> int:
    """Return the count for a name; 0 if it is absent."""
    return counts.get(name, 0)


@register.filter
def entry(values: Mapping[str, Any], name: str) -> Any:
    """Return the value for a name; "-" if it is absent or None."""
    value = values.get(name)
    return "-" if value is None else value


@register.filter
def nth(values: Sequence[str], number: int) -> str:
    """Return the element at an index; "" past the end."""
    return values[number] if number < len(values) else ""


@register.filter
def slice_colour(name: str) -> str:
    """Return the colour class of a slice, the same on every page; grey for other queues."""
    return _SLICE_COLOURS.get(name, "hop-wait")


@register.filter
def age(moment: datetime, now: datetime) -> str:
    """Format the time between a moment and now: `42 min`."""
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size}{_NARROW}{unit}"
    return f"{seconds}{_NARROW}s"


@register.simple_tag
def clock(moment: datetime | None, form: str = "second") -> SafeString:
    """Return a `time` element in UTC, which the page's script shows in the viewer's time zone."""
    if moment is None:
        return format_html("{}", "-")
    utc = moment.astimezone(UTC)
    text = utc.strftime(_FORMS[form]) + (f".{utc.microsecond // 1_000:03}" if form == "exact" else "")
    return format_html(
        '<time datetime="{}" data-form="{}">{}</time>',
        utc.isoformat(timespec="milliseconds"),
        form,
        text,
    )


@register.simple_tag
def spark(values: Sequence[float | None], what: str, form: str = "count") -> SafeString:
    """Return bars, oldest first, as an SVG image whose label has the range of the values; a missing value has no bar.

    form: filter that formats the values: `count`, `rate`, `lag` or `share`; shares have the height of their percentage
    """
    known = [value for value in values if value is not None]
    if not known:
        return format_html('<span class="spark" role="img" aria-label="{}: no data"></span>', what)
    formats: Mapping[str, Callable[[Any], str]] = {"count": count, "rate": rate, "lag": lag, "share": share}
    label = f"{what}: {formats[form](min(known))} to {formats[form](max(known))}, last {formats[form](known[-1])}"
    top = 1 if form == "share" else max(known) or 1
    bars = "".join(
        f"M{number * _BAR} {_SPARK}v-{max(1, round(_SPARK * max(0, value) / top))}h{_BAR - 1}V{_SPARK}z"
        for number, value in enumerate(values)
        if value is not None
    )
    width = len(values) * _BAR
    return format_html(
        '<svg class="spark" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">'
        '<title>{2}</title><path d="{3}"/></svg>',
        width,
        _SPARK,
        label,
        bars,
    )


@register.simple_tag
def share_bar(percent: int, kind: str = "") -> SafeString:
    """Return a bar of a length in percent, for a cell with the figure. `kind`: `now` for the newer one of two."""
    return format_html(
        '<svg class="share-bar{}" viewBox="0 0 100 8" width="100" height="8" aria-hidden="true">'
        '<path d="M0 0h{}v8H0z"/></svg>',
        f" share-bar-{kind}" if kind else "",
        max(percent, 1) if percent else 0,
    )


@register.simple_tag(takes_context=True)
def sortable(context: Mapping[str, Any], column: str, words: str, kind: str = "") -> SafeString:
    """Return the heading of a sortable column: a link that sorts by it, or reverses the order if it is sorted by it."""
    order: SortOrder = context["order"]
    is_it = order.column == column
    descending = not order.descending if is_it else kind == "n"  # figures sort largest first
    sort = format_html(' aria-sort="{}"', "descending" if order.descending else "ascending") if is_it else ""
    kept = context.get("kept", {})
    query = urlencode({**kept, "sort": SortOrder(column, descending)})
    return format_html('<th scope="col" class="{}"{}><a href="?{}">{}</a></th>', kind, sort, query, words)
