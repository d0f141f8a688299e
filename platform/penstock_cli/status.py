"""Lines of `penstock status`."""

from collections import Counter
from typing import Any, Final

from penstock_cli.connection import Connection
from penstock_cli.times import seconds_in_words
from penstock_client.api.operations import get_summary, list_pipe_summaries

HEAD: Final = ("PIPE", "STATE", "REVISION", "EVENTS/S", "LAG P95", "UNDELIVERED", "LOST", "ALERTS")


def status_lines(connection: Connection, tenant: str) -> list[dict[str, Any]]:
    """Return the pipes of a tenant with their figures of the last hour, newest pipe first. Raises CliError."""
    alerts = Counter(one.pipe for one in connection.call(get_summary.sync_detailed, tenant, limit=200).alerts)
    pipes = connection.pages(list_pipe_summaries.sync_detailed, tenant)
    return [one.to_dict() | {"open_alerts": alerts[one.pipe]} for one in pipes]


def columns_of(summary: dict[str, Any]) -> tuple[object, ...]:
    """Return the columns of a status line."""
    state = summary["state"] + (f" ({summary['reason']})" if summary["reason"] else "")
    revision = str(summary["revision"] or "-") + (f" > {summary['next_revision']}" if summary["next_revision"] else "")
    return (
        summary["name"],
        state,
        revision,
        f"{summary['per_s']:.1f}",
        seconds_in_words(summary["lag_p95_us"]),
        summary["undelivered"],
        summary["lost"],
        summary["open_alerts"],
    )
