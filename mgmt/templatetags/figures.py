"""How figures read on pages: durations in ms or s, grouped counts, shares. Presentation only."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dataplane.ledger.breakdown import Slice
from dataplane.plan.outbound import address_of
from dataplane.spec import destination_of
from dataplane.tables.quotas import Kind
from mgmt.console.editor.trial import pretty as pretty_body
from mgmt.console.sorting import Order
from mgmt.console.wording import cause_in_words, failure_in_words
from mgmt.queries.timing import SLICE_NAMES

register = template.Library()
_NARROW: Final = "\u202f"  # narrow no-break space: groups digits, and keeps a number and its unit on one line
_FORMS: Final = {"minute": "%H:%M", "second": "%H:%M:%S", "full": "%Y-%m-%d %H:%M:%S", "exact": "%H:%M:%S"}
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
    """Microseconds for people: `<0.1 ms`, `0.4 ms`, `38 ms`, `1.2 s`, `3 min`; a dash for what was not measured."""
    if not isinstance(us, int):
        return "-"
    size = abs(us)
    if 0 < size < 50:
        return f"<0.1{_NARROW}ms"
    if size < 10_000:
        return f"{us / 1_000:.1f}{_NARROW}ms"
    if size < 1_000_000:
        return f"{us / 1_000:.0f}{_NARROW}ms"
    if size < 120_000_000:
        return f"{us / 1_000_000:.1f}{_NARROW}s"
    return f"{us / 60_000_000:.0f}{_NARROW}min"


@register.filter
def lag(us: object) -> str:
    """Return a lag for people: one below zero, because a source's clock runs ahead of ours, is shown as 0."""
    return duration(max(0, us) if isinstance(us, int) else us)


@register.filter
def cpu_s(us: int) -> str:
    """CPU in seconds, without the unit: figures of one column are compared."""
    seconds = us / 1_000_000
    return count(round(seconds)) if seconds >= 1_000 else f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


@register.filter
def size(size_bytes: int) -> str:
    """An amount of data in the unit in which it has one to three digits before the point."""
    amount, units = float(size_bytes), iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while amount >= 999.5 and unit != "TB":
        amount, unit = amount / 1_000, next(units)
    return f"{amount:.0f}{_NARROW}{unit}" if unit == "B" or amount >= 99.95 else f"{amount:.1f}{_NARROW}{unit}"


@register.filter
def quota(amount: int, kind: Kind) -> str:
    """An amount of a kind of quota: data in its own units, everything else as a count."""
    if kind.unit in ("bytes", "bytes/s"):
        return f"{size(amount)}/s" if kind.unit == "bytes/s" else size(amount)
    return count(amount)


@register.filter
def took(us: int) -> str:
    """A short piece of work: in microseconds while these are few."""
    return f"{us}{_NARROW}µs" if us < 1_000 else duration(us)


@register.filter
def count(number: object) -> str:
    """A whole number in groups of three; a dash where a template found none."""
    return f"{number:,}".replace(",", _NARROW) if isinstance(number, int) else "-"


@register.filter
def address(config: Mapping[str, Any]) -> str:
    """Where a destination is: its URL, or what we keep it as."""
    return address_of(destination_of(config))


@register.filter
def seconds(number: float) -> str:
    """A setting in seconds, in the largest unit that it fills evenly."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if number >= size and not number % size:
            return f"{number // size:.0f}{_NARROW}{unit}"
    return f"{number:g}{_NARROW}s"


@register.filter
def rate(per_s: float) -> str:
    """Events a second: two digits where they matter."""
    if 0 < per_s < 0.05:
        return "<0.1"
    return f"{per_s:.1f}" if 0 < per_s < 10 else count(round(per_s))


@register.filter
def share(value: float | None) -> str:
    """A share of one as a percentage."""
    return "-" if value is None else f"{value * 100:.1f}{_NARROW}%"


@register.filter
def failure(reason: str, status: int) -> str:
    """An attempt's reason in one line of words."""
    words, detail = failure_in_words(reason, status)
    return f"{words} ({detail})" if detail else words


@register.filter
def cause_words(cause: str) -> str:
    """A cause as half a sentence."""
    return cause_in_words(cause)


@register.filter
def pretty(body: str) -> str:
    """A JSON body with indents; anything else as it is."""
    return pretty_body(body)


@register.filter
def of(counts: dict[str, int], name: str) -> int:
    """The count under a name, 0 if it is absent."""
    return counts.get(name, 0)


@register.filter
def entry(values: Mapping[str, Any], name: str) -> Any:
    """What a mapping has under a name; "-" if that is nothing."""
    value = values.get(name)
    return "-" if value is None else value


@register.filter
def nth(values: Sequence[str], number: int) -> str:
    """One of several, "" past their end."""
    return values[number] if number < len(values) else ""


@register.filter
def slice_colour(name: str) -> str:
    """Return the colour of a slice of the time, the same on every page; a queue is grey."""
    return _SLICE_COLOURS.get(name, "hop-wait")


@register.filter
def age(moment: datetime, now: datetime) -> str:
    """How long ago: `42 min`."""
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size}{_NARROW}{unit}"
    return f"{seconds}{_NARROW}s"


@register.simple_tag
def clock(moment: datetime | None, form: str = "second") -> SafeString:
    """A time as UTC, which the page's script shows in the viewer's zone."""
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


@register.simple_tag(takes_context=True)
def sortable(context: Mapping[str, Any], column: str, words: str, kind: str = "") -> SafeString:
    """The heading of a column by which the page's list can be ordered: a link to that, and then to the other way."""
    order: Order = context["order"]
    is_it = order.column == column
    falls = not order.falls if is_it else kind == "n"  # of figures one looks for the largest
    sort = format_html(' aria-sort="{}"', "descending" if order.falls else "ascending") if is_it else ""
    query = urlencode({name: value for name, value in (("q", context["q"]), ("sort", Order(column, falls))) if value})
    return format_html('<th scope="col" class="{}"{}><a href="?{}">{}</a></th>', kind, sort, query, words)
