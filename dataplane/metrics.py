"""Every metric of every process: names, kinds, units, labels, what they say and what a rise means. Constants only.

What serves them looks them up here, so a name that is not in this list cannot be exported. `make reference` writes
docs/reference/metrics.md from it; the dashboard in deploy/ is held against it by a test.
"""

from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
_WRITER: Final = ("cell", "writer", "kind")


class Metric(NamedTuple):
    """`part`: which process serves it. `rise`: what it means that it grows, and what to look at then."""

    name: str
    part: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    says: str
    rise: str


METRICS: Final = (
    Metric("penstock_process_cpu_seconds_total", "every process", "counter", "seconds", (),
           "CPU time of the process.", "Its rate is the share of a core that it takes."),
    Metric("penstock_process_resident_bytes", "every process", "gauge", "bytes", (),
           "Memory of the process.", "Without end: a leak. Every queue has a limit."),
    Metric("penstock_process_start_seconds", "every process", "gauge", "seconds", (),
           "When the process began, since the epoch.", "It was started anew: its log says why the one before ended."),
    Metric("penstock_process_dropped_spans_total", "every process", "counter", "spans", (),
           "Spans of traces that it could not export.",
           "The collector is away, refuses them, or is slower than they come: record a smaller share. Nothing waits."),
    Metric("penstock_ingest_answers_total", "ingest", "counter", "answers", ("status",),
           "Answers by status, without those to probes.",
           "5xx: events cannot be stored; look at the brokers and at journal_failing. 4xx: senders are refused."),
    Metric("penstock_ingest_events_total", "ingest", "counter", "events", ("outcome",),
           "Events by outcome: acked, refused (4xx), over-quota (429; a request refused unread counts as one), "
           "unavailable (503: stored or not, they come again).",
           "unavailable: Kafka or the disk of the journal cannot keep up."),
    Metric("penstock_ingest_waiting_requests", "ingest", "gauge", "requests", (),
           "Requests that wait for Kafka's reports.", "The brokers answer slowly."),
    Metric("penstock_ingest_ready", "ingest", "gauge", "0 or 1", (),
           "Whether events are taken.", "1: the control topic has been read."),
    Metric("penstock_ingest_journal_failing", "ingest", "gauge", "0 or 1", (),
           "Whether ACKs cannot be noted on disk: nothing is ACKed then.", "1: the disk is full, or gone."),
    Metric("penstock_ingest_unreported_events", "ingest", "gauge", "events", (),
           "ACKed events of which the ledger has no report yet; at a million nothing more is taken.",
           "The audit topic takes nothing: the heartbeat says why."),
    Metric("penstock_ingest_report_late_seconds", "ingest", "gauge", "seconds", (),
           "How long no report to the ledger could be stored; 0 below ten seconds.",
           "As above. Pages show events as not yet processed; nothing is lost."),
    Metric("penstock_ingest_dropped_headers_total", "ingest", "counter", "headers", (),
           "Headers of records of Kafka sources that no destination could be sent; the records are kept.",
           "A producer of such a topic writes invalid names or values; ingest's log names the source."),
    Metric("penstock_echo_answers_total", "echo", "counter", "answers", ("status",),
           "Deliveries to the echo by the status of its answer.", "4xx: unsigned or too large. 408: slow bodies."),
    Metric("penstock_ingest_producer_replacements_total", "ingest", "counter", "producers", (),
           "Kafka producers that were replaced after a fatal error; events under way were answered with 503.",
           "The brokers lost records that they had acknowledged, or forgot producers: look at their logs and disks. "
           "The ledger names what is lost."),
    Metric("penstock_keeper_wanted_applications", "keeper", "gauge", "applications", (),
           "Cells' applications that are asked for.", "There are more cells."),
    Metric("penstock_keeper_applications", "keeper", "gauge", "applications", (),
           "Cells' applications that run.",
           "Less than are asked for: one does not come up; the keeper's log says why."),
    Metric("penstock_writer_heartbeat_age_seconds", "observer", "gauge", "seconds", _WRITER,
           "How long ago a driver, lane or ingest replica said that it lives.", "Above 5: it hangs, or is gone."),
    Metric("penstock_writer_running", "observer", "gauge", "0 or 1", _WRITER,
           "Whether it said that it runs: 0 while it starts, drains or fails.", "1: it has come up."),
    Metric("penstock_writer_cpu_seconds_total", "observer", "counter", "seconds", _WRITER,
           "Its CPU time.", "Its rate near 1: the lane is at its limit; another lane shares the partitions."),
    Metric("penstock_writer_resident_bytes", "observer", "gauge", "bytes", _WRITER,
           "Its memory.", "As above."),
    Metric("penstock_writer_unsettled_messages", "observer", "gauge", "messages", _WRITER,
           "Messages that a lane has taken and not settled.", "At its limit: what it delivers to is slow."),
    Metric("penstock_writer_partitions", "observer", "gauge", "partitions", _WRITER,
           "Partitions that a lane holds.", "Others of its kind have gone."),
    Metric("penstock_writer_dropped_spans_total", "observer", "counter", "spans", _WRITER,
           "Spans of traces that it could not export, since it began.",
           "As above."),
    Metric("penstock_writer_failing_files", "observer", "gauge", "kinds", _WRITER,
           "Kinds of files on its host that it goes on without: snapshots, verdicts, crash notes, look-up tables.",
           "The disk is full or read-only: nothing is lost, a restart takes longer and repeats more sends."),
    Metric("penstock_writer_held_pipes", "observer", "gauge", "pipes", _WRITER,
           "Pipes that a process lane holds because a plan, the salt of masks, a look-up table or a topic is missing.",
           "Their pages say what is missing; nothing is lost, and they go on automatically when it comes."),
    Metric("penstock_observer_records_total", "observer", "counter", "records", ("topic",),
           "Records read of what the data plane tells of itself, by the topic's purpose.",
           "Its rate follows the traffic; at 0 the data plane is silent or Kafka is away."),
    Metric("penstock_observer_behind_seconds", "observer", "gauge", "seconds", (),
           "How old the newest record was when it was read.", "Figures on pages are as old as this."),
    Metric("penstock_observer_store_seconds", "observer", "histogram", "seconds", (),
           "How long it took to store a batch.", "Postgres is slow: look at its locks and its disk."),
    Metric("penstock_observer_sessions_total", "observer", "counter", "sessions", (),
           "How often observing began, anew after each failure.", "Postgres or Kafka went away; the log says which."),
    Metric("penstock_observer_open_minutes", "observer", "gauge", "minutes", (),
           "Minutes of pipes that are not sealed yet.", "Something is not settled: nodes that stand still."),
    Metric("penstock_sealed_minutes_total", "observer", "counter", "minutes", (),
           "Minutes of pipes that were sealed.", "Its rate is how many pipes had traffic."),
    Metric("penstock_sealed_messages_total", "observer", "counter", "messages", (),
           "Messages in these minutes.", "Its rate follows the traffic, some minutes later."),
    Metric("penstock_lost_units_total", "observer", "counter", "units", (),
           "Units lost in these minutes.",
           "Each is named on its pipe's page, with where it was seen last."),
    Metric("penstock_waiting_messages", "observer", "gauge", "messages", ("kind",),
           "Messages that wait for somebody: dead or held.", "A destination refuses, or is paused or suspended."),
    Metric("penstock_open_alerts", "observer", "gauge", "alerts", ("state",),
           "Alerts that are not resolved, by state.", "Something needs a person."),
    Metric("penstock_pipes", "observer", "gauge", "pipes", ("state",),
           "Pipes by state.", "More of them."),
    Metric("penstock_web_request_seconds", "web", "histogram", "seconds", ("route", "status"),
           "How long pages and API took to answer, streams without their length; the count is that of the requests.",
           "Postgres is slow, or a page costs too much."),
    Metric("penstock_web_refusals_total", "web", "counter", "requests", ("code",),
           "Requests refused before a page saw them: body-slow, body-too-large, busy.",
           "busy: pages are slow, or more is asked than one process answers. body-slow: somebody holds connections."),
    Metric("penstock_web_tail_viewers", "web", "gauge", "viewers", (),
           "Who looks at a live tail.", "At 16 nobody more is let in."),
    Metric("penstock_task_seconds", "worker", "histogram", "seconds", ("task", "state"),
           "How long tasks of the control plane took, by how they ended.",
           "FAILURE: the log says why. Nothing at all: beat, Redis or the worker is gone."),
)  # fmt: skip
BY_NAME: Final = {metric.name: metric for metric in METRICS}
_HEAD: Final = """# Metrics

Written from `dataplane/metrics.py` by `make reference`; a test keeps it so.

A process serves these as Prometheus reads them, at `/metrics` of the address in `PENSTOCK_METRICS` (`host:port`;
nowhere if it is empty). The box gives its processes the ports from `PENSTOCK_METRICS_PORT` on, on 127.0.0.1, in this
order: web, worker, observer, keeper, echo, ingest-1, ingest-2 and whatever replicas the Autoscaler adds. Containers
listen on 9100, the second ingest replica on 9101. Lanes and drivers serve nothing: they beat once a second, and the
Observer serves what they said. No label names a tenant, a pipe or a message: those have pages.

| name | process | kind | unit | labels | says | when it rises |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """The reference page, Markdown."""
    lines = (
        f"| `{m.name}` | {m.part} | {m.kind} | {m.unit} | {', '.join(m.labels)} | {m.says} | {m.rise} |"
        for m in METRICS
    )
    return _HEAD + "\n".join(lines) + "\n"
