"""Journey of a message in words. Pure."""

from collections.abc import Iterator
from typing import Any

from penstock_cli.times import seconds_in_words

_ENDED = {"passed": "passed", "filtered": "ended on purpose", "dead": "failed"}


def journey_words(journey: Any) -> Iterator[str]:
    """Yield the lines that explain a journey of the API."""
    yield f"Message {journey.message_id or journey.position}: {journey.state}."
    if arrival := journey.arrival:
        stored = seconds_in_words(arrival.stored_us)
        at = f"{arrival.ingest_time:%Y-%m-%d %H:%M:%S} UTC"
        yield f"Accepted at {at} at source {arrival.source}, stored after {stored}."
    if journey.unavailable:
        yield f"The event cannot be shown: {journey.unavailable}."
    if journey.bin_ == "lost" and journey.last_seen_words:
        yield f"Lost. Last seen at {journey.last_seen}: {journey.last_seen_words}."
    for stage in journey.stages:
        reason = f": {stage.detail or stage.cause}" if stage.detail or stage.cause else ""
        to = f", to {', '.join(stage.to)}" if stage.to else ""
        yield f"{stage.node} of revision {journey.revision}: {_ENDED.get(stage.outcome, stage.outcome)}{reason}{to}."
    for rule in journey.rules:
        if rule.matched:
            yield f"Rule {rule.number} matched: `{rule.when}`, to {', '.join(rule.to)}."
    for leg in journey.destinations:
        yield from _leg(leg)
    if journey.not_sent_to:
        yield f"Not sent to {', '.join(journey.not_sent_to)}: the routes did not choose them."


def _leg(leg: Any) -> Iterator[str]:
    took = f" after {seconds_in_words(leg.whole_us)}" if leg.whole_us else ""
    yield f"Destination {leg.destination}: {leg.bin_ or 'in progress'}{took}."
    if leg.last_seen_words:
        yield f"  Last seen at {leg.last_seen}: {leg.last_seen_words}."
    for one in leg.attempts:
        answer = f"status {one.status}" if one.status else "no response"
        reason = f", {one.reason}" if one.reason else ""
        took = seconds_in_words(one.total_us)
        yield f"  Attempt {one.number} at {one.at:%H:%M:%S}: {one.outcome}, {answer}{reason}, {took}."
        if one.next_at:
            yield f"  Next attempt at {one.next_at:%Y-%m-%d %H:%M:%S} UTC."
    if leg.dead_letter:
        yield "  Send it again with a redrive on the page of the pipe, once the destination accepts it."
