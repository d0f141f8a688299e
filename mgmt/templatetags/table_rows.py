"""Rows of the large tables of a pipe's page, built here because a template takes ten times as long for their cells."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from mgmt.ledger.queries.minutes import MinuteLoss
from mgmt.pipes.plots import PlotPoint
from mgmt.templatetags.figures import clock, count, lag, loss, plain, rate, share

register = template.Library()
_ANY_BUCKET: Final = 10_000_000_000  # no id contains it
_COLOURS: Final = {"lost": " bad", "dead": " bad", "retrying": " wait", "held": " wait"}


@register.simple_tag
def plot_rows(points: Iterable[PlotPoint]) -> SafeString:
    """Return the rows of the table of the plots."""
    return format_html_join("\n", '<tr data-at="{}"><th scope="row">{}</th>{}<td>{}</td></tr>', map(_plot_row, points))


def _plot_row(point: PlotPoint) -> tuple[object, ...]:
    figures = [
        *((value, rate(value)) for value in (point.in_per_s, point.out_per_s)),
        *((value, lag(value)) for value in (point.p50_us, point.p95_us, point.oldest_us)),
        *((number, count(number)) for number in point.outcomes),
    ]
    cells = ((plain(value), shown) for value, shown in figures)
    return (
        point.at.isoformat(),
        clock(point.at, "minute"),
        format_html_join("", '<td class="n" data-value="{}">{}</td>', cells),
        "sealed" if point.sealed else "open",
    )


@register.simple_tag
def share_rows(rows: Iterable[tuple[datetime, Sequence[float | None]]]) -> SafeString:
    """Return the rows of the table of shares over time."""
    return format_html_join(
        "\n",
        '<tr data-at="{}"><th scope="row">{}</th>{}</tr>',
        ((at.isoformat(), clock(at, "minute"), _shares(values)) for at, values in rows),
    )


def _shares(values: Iterable[float | None]) -> SafeString:
    cells = (("" if value is None else f"{value:.6f}", share(value)) for value in values)
    return format_html_join("", '<td class="n" data-share="{}">{}</td>', cells)


@register.simple_tag
def loss_strip(pipe_id: str, lines: Sequence[MinuteLoss]) -> SafeString:
    """Return one link for each minute with its loss, oldest first; `lines` begin with the newest."""
    links = _MinuteLinks(pipe_id)
    return format_html_join(
        "",
        '<li id="strip-{}"><a class="{}" href="{}" title="{} UTC: {} of {} lost ({})">'
        '<span class="visually-hidden">{} UTC: {} lost</span></a></li>',
        (_strip_entry(links, line) for line in reversed(lines)),
    )


def _strip_entry(links: "_MinuteLinks", line: MinuteLoss) -> tuple[object, ...]:
    at, its = line.starts.strftime("%H:%M"), line.loss
    state = "lossy" if its.lost else "" if line.sealed_at else "open"
    lost = count(its.lost)
    return (line.bucket, state, links.of(line), at, lost, count(its.due), loss(its.share), at, lost)


@register.simple_tag
def loss_rows(pipe_id: str, lines: Iterable[MinuteLoss], bins: Sequence[str], several: bool) -> SafeString:
    """Return the rows of the loss table; `several` adds one for each destination of a minute."""
    links = _MinuteLinks(pipe_id)
    return format_html_join("\n", "{}", ((_loss_row(links.of(line), line, bins, several),) for line in lines))


def _loss_row(link: str, line: MinuteLoss, bins: Sequence[str], several: bool) -> SafeString:
    its = line.loss
    own = format_html(
        '<tr id="minute-{}"><th scope="row"><a href="{}">{}</a></th><td>{}</td><td class="n">{}</td>{}{}{}'
        '<td class="n {}">{}</td></tr>',
        line.bucket,
        link,
        clock(line.starts, "minute"),
        _SEALED if line.sealed_at else _OPEN,
        count(line.accepted),
        format_html_join("", "{}", ((_bin_cell(link, name, line.bins.get(name, 0)),) for name in bins)),
        _cell(line.unacked),
        _cell(line.late),
        "bad" if its.lost else "zero",
        loss(its.share),
    )
    parts = (part for part in line.destinations if part.name) if several else ()
    return own + format_html_join(
        "",
        '<tr class="sub"><td>{}</td><td></td><td></td>{}<td></td><td></td><td></td></tr>',
        (
            (part.name, format_html_join("", '<td class="n">{}</td>', ((count(part.bins.get(b, 0)),) for b in bins)))
            for part in parts
        ),
    )


def _bin_cell(link: str, name: str, number: int) -> SafeString:
    if not number or name == "delivered":
        return _cell(number)
    colour = _COLOURS.get(name, "")
    return format_html(
        '<td class="n{}"><a class="text-reset" href="{}?bin={}">{}</a></td>', colour, link, name, count(number)
    )


def _cell(number: int) -> SafeString:
    return format_html('<td class="n">{}</td>', count(number)) if number else _ZERO


class _MinuteLinks:
    """Links to the pages of a pipe's minutes, resolved once for all of them."""

    def __init__(self, pipe_id: str) -> None:
        self._before, self._after = reverse("console:minute", args=[pipe_id, _ANY_BUCKET]).split(str(_ANY_BUCKET))

    def of(self, line: MinuteLoss) -> str:
        return f"{self._before}{line.bucket}{self._after}"


_ZERO: Final = format_html('<td class="n zero">{}</td>', "0")
_SEALED: Final = format_html('<span class="state state-off">{}</span>', "sealed")
_OPEN: Final = format_html('<span class="state state-wait">{}</span>', "open")
