"""Decide whether the loss of a sealed minute opens an alert, and describe it by node. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dataplane.ledger.losses import BucketLoss

MOST_LISTED: Final = 20  # lost messages that an alert names; its page links to all of them


def loss_percent(loss: BucketLoss) -> float:
    """Return the higher of the end-to-end loss and the loss of the worst node, in percent.

    A destination that gets few of the messages may lose all of its own and hardly change the end-to-end loss.
    """
    return 100 * max([loss.share, *(node.share for node in loss.nodes)])


def exceeds(loss: BucketLoss, threshold_percent: float) -> bool:
    """Return True if the loss is above the threshold; with a threshold of 0, one lost message is."""
    return loss.lost > 0 and loss_percent(loss) > threshold_percent


def summary_of(losses: Sequence[BucketLoss], threshold_percent: float) -> dict[str, Any]:
    """Return the figures of an alert about these minutes: by node in order of travel, and end to end."""
    nodes: dict[str, list[int]] = {}
    for loss in losses:
        for node in loss.nodes:
            known = nodes.setdefault(node.node, [0, 0])
            known[0] += node.due
            known[1] += node.lost
    due, lost = sum(loss.due for loss in losses), sum(loss.lost for loss in losses)
    return {
        "threshold_percent": threshold_percent,
        "worst_minute_percent": _percent(max((loss_percent(loss) for loss in losses), default=0.0)),
        "end_to_end": {"due": due, "lost": lost, "percent": _share(due, lost)},
        "nodes": [
            {"node": name, "due": due, "lost": lost, "percent": _share(due, lost)}
            for name, (due, lost) in nodes.items()
        ],
    }


def bounded(buckets: Iterable[int], most: int) -> list[int]:
    """Return the newest `most` buckets, in order and once each."""
    return sorted(set(buckets))[-most:]


def _share(due: int, lost: int) -> float:
    return _percent(100 * lost / due) if due else 0.0


def _percent(value: float) -> float:
    return round(value, 4)
