"""Rows of the list of pipes, built here because a template takes several times as long for their cells."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.pipes.queries.pipes import PipeStatus, PipeSummary
from mgmt.templatetags.figures import age, count, delivered_share, lag, rate, spark

register = template.Library()
_STATE: Final = '<span class="state state-{}">{}</span>'
_OTHER_STATES: Final = {"coming": ("wait", "starting"), "paused": ("wait", "paused"), "closed": ("off", "closed")}
_ROW: Final = (
    '<tr id="pipe-{}"><th scope="row"><a href="{}">{}</a><span class="quiet fw-normal">@{}</span></th>'
    '<td data-label="State">{}</td>{}</tr>'
)


@register.simple_tag
def pipe_state(status: PipeStatus) -> SafeString:
    """Return a pipe's state, and that of its next revision."""
    return format_html_join(" ", _STATE, _states_of(status))


def _states_of(status: PipeStatus) -> Iterator[tuple[str, str]]:
    """Yield the colour and the text of each state."""
    coming = f"@{status.next_revision} " if status.next_revision else ""
    if status.kind == "live" or (status.kind == "failed" and coming):
        yield "fine", "live"
    if status.kind == "live" and coming:
        yield "wait", coming + (f"ramping {status.share} %" if status.share else "starting")
    elif status.kind == "failed":
        yield "bad", f"{coming}failed"
    elif status.kind != "live":
        yield _OTHER_STATES[status.kind]


@register.simple_tag
def pipe_rows(
    lines: Iterable[PipeSummary], span: BucketRange, heads: Mapping[str, str], links: Mapping[str, str], now: datetime
) -> SafeString:
    """Return one row for each pipe.

    heads: names of the columns that depend on the range, by column
    links: by pipe, the page that explains its undelivered messages
    """
    return format_html_join("\n", _ROW, (_pipe_row(line, span, heads, links, now) for line in lines))


def _pipe_row(
    line: PipeSummary, span: BucketRange, heads: Mapping[str, str], links: Mapping[str, str], now: datetime
) -> tuple[object, ...]:
    link, trend, share = reverse("console:pipe", args=[line.pipe.id]), line.trend, delivered_share(line.delivered_share)
    of_range = f"{link}?range={span.name}"
    per_s = format_html("{}" if line.per_s else '<span class="zero">{}</span>', rate(line.per_s))
    flow = _figure(f"{of_range}#flow", per_s, spark(trend.rates, "Events in per second", "rate"))
    lags = _figure(f"{of_range}#lag", lag(line.lag_p95_us), spark(trend.lag_p95s_us, "Lag p95", "lag"))
    if line.oldest_at:
        lags += format_html(' <small class="wait">oldest waits {}</small>', age(line.oldest_at, now))
    delivered = format_html("{} <small>{}</small>", count(line.delivered), share)
    cells = (
        ("In / s", flow),
        (heads["lag"], lags),
        (heads["delivered"], _figure(f"{of_range}#loss", delivered, spark(trend.shares, "Delivered", "share"))),
        ("Undelivered", _undelivered(line, links)),
        ("Lost (sealed minutes)", _count("bad" if line.lost_sealed else "zero", f"{of_range}#loss", line.lost_sealed)),
    )
    return (
        line.pipe.id,
        link,
        line.pipe.name,
        line.standing.revision,
        format_html_join(" ", "{}", ((state,) for state in _states(line))),
        format_html_join("", '<td class="n" data-label="{}">{}</td>', cells),
    )


def _states(line: PipeSummary) -> Iterator[SafeString]:
    yield pipe_state(line.standing)
    if alert := line.loss_alert:
        link = reverse("console:alert", args=[line.pipe.id, alert.id])
        yield format_html('<a class="state state-bad" href="{}">{} lost</a>', link, count(alert.count))
    if line.failing:
        yield format_html(_STATE, "bad", f"{', '.join(line.failing)} failing")
    if line.delayed:
        yield format_html(_STATE, "wait", f"{', '.join(line.delayed)} delayed")


def _undelivered(line: PipeSummary, links: Mapping[str, str]) -> SafeString:
    if not line.undelivered:
        return _NONE
    return _count("bad" if line.needs_you else "wait", links[line.pipe.id], line.undelivered)


def _figure(link: str, figure: str, image: SafeString) -> SafeString:
    return format_html('<a href="{}">{} {}</a>', link, figure, image)


def _count(colour: str, link: str, number: int) -> SafeString:
    return format_html('<a class="{}" href="{}">{}</a>', colour, link, count(number))


_NONE: Final = format_html('<span class="zero">{}</span>', 0)
