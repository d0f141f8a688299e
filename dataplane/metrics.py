"""All metrics of all processes: names, kinds, units, labels, descriptions, and what a rise means. Constants only.

Exporters look metrics up here, so a name that is not in this list cannot be exported. `make reference` writes
docs/reference/metrics.md from it; a test compares the dashboard in deploy/ with it.
"""

from typing import Final, Literal, NamedTuple

MetricKind = Literal["counter", "gauge", "histogram"]
_WRITER: Final = ("cell", "writer", "kind")


class Metric(NamedTuple):
    """One metric. `part`: process that serves it; `says`: description; `rise`: what a rise means and what to check."""

    name: str
    part: str
    kind: MetricKind
    unit: str
    labels: tuple[str, ...]
    says: str
    rise: str


METRICS: Final = (
    Metric("penstock_process_cpu_seconds_total", "every process", "counter", "seconds", (),
           "CPU time of the process.", "Its rate is the share of a core that the process uses."),
    Metric("penstock_process_resident_bytes", "every process", "gauge", "bytes", (),
           "Resident memory of the process.", "Steady growth: a memory leak; every queue has a limit."),
    Metric("penstock_process_start_seconds", "every process", "gauge", "seconds", (),
           "Start time of the process, in seconds since the epoch.",
           "It was restarted: the log says why the previous process ended."),
    Metric("penstock_process_dropped_spans_total", "every process", "counter", "spans", (),
           "Trace spans that it could not export.",
           "The collector is unreachable, refuses them or is too slow: sample fewer. No message waits."),
    Metric("penstock_ingest_answers_total", "ingest", "counter", "responses", ("status",),
           "Responses by status, without health checks.",
           "5xx: events cannot be stored; check the brokers and journal_failing. 4xx: senders are refused."),
    Metric("penstock_ingest_events_total", "ingest", "counter", "events", ("outcome",),
           "Events by outcome: acked, refused (4xx), over-quota (429; a request refused unread counts as one), "
           "unavailable (503: stored or not, senders repeat them).",
           "unavailable: Kafka or the disk of the ack journal cannot keep up."),
    Metric("penstock_ingest_connections", "ingest", "gauge", "connections", (),
           "Open connections of senders.", "At 4,096 in a process, new ones replace idle ones: add replicas."),
    Metric("penstock_ingest_refused_connections_total", "ingest", "counter", "connections", (),
           "Connections closed at once: the process has 4,096, and none is idle.",
           "Add replicas, or look for a client that opens connections without limit."),
    Metric("penstock_ingest_waiting_requests", "ingest", "gauge", "requests", (),
           "Requests that wait for Kafka's delivery reports.", "The brokers respond slowly."),
    Metric("penstock_ingest_ready", "ingest", "gauge", "0 or 1", (),
           "1 if ingest accepts events.", "1: the control topic has been read."),
    Metric("penstock_ingest_journal_failing", "ingest", "gauge", "0 or 1", (),
           "1 if the ack journal cannot be written; no event is acknowledged then.",
           "1: the disk is full or has failed."),
    Metric("penstock_ingest_unreported_events", "ingest", "gauge", "events", (),
           "Acknowledged events not yet reported to the ledger; at a million, ingest accepts no more.",
           "The audit topic refuses writes: the heartbeat says why."),
    Metric("penstock_ingest_report_late_seconds", "ingest", "gauge", "seconds", (),
           "Time since the last report to the ledger was stored; 0 below ten seconds.",
           "The audit topic refuses writes. Pages show events as not yet processed; nothing is lost."),
    Metric("penstock_ingest_dropped_headers_total", "ingest", "counter", "headers", (),
           "Headers of Kafka source records that cannot be sent to any destination; the records are kept.",
           "A producer of such a topic writes invalid names or values; the ingest log names the source."),
    Metric("penstock_echo_answers_total", "echo", "counter", "responses", ("status",),
           "Deliveries to the echo by response status.", "4xx: unsigned or too large. 408: slow bodies."),
    Metric("penstock_table_queries_answers_total", "table-queries", "counter", "responses", ("status",),
           "Responses to table queries by status.",
           "503: this host has not read the look-up topic to its end. 401: tokens expired."),
    Metric("penstock_table_queries_seconds", "table-queries", "histogram", "seconds", (),
           "Time to read and encode the response to a table query, without the network.",
           "The host's disk is slow, or clients request large pages."),
    Metric("penstock_table_queries_streams", "table-queries", "gauge", "streams", (),
           "Open streams of changes of look-up tables.",
           "More clients follow changes; at 1,000 a host refuses further ones."),
    Metric("penstock_table_queries_streams_ended_total", "table-queries", "counter", "streams", ("reason",),
           "Streams of changes that ended, by reason.",
           "slow: clients do not read their streams. refused: tokens expire, or tables were removed."),
    Metric("penstock_table_queries_changes_total", "table-queries", "counter", "changes", (),
           "Changed rows sent to streams.", "Rows change more often, or clients begin with snapshots."),
    Metric("penstock_table_queries_lag_seconds", "table-queries", "gauge", "seconds", (),
           "Time since this host last had every record of the look-up topic; absent until it first had.",
           "Above 5: Kafka is unreachable, the disk refuses writes, or more rows change than the host can store."),
    Metric("penstock_mirror_behind_messages", "mirror", "gauge", "messages", ("topic",),
           "Records of the active Kafka cluster that the standby one does not have; output topics count together.",
           "The mirror is slower than the traffic, or a cluster is unreachable."),
    Metric("penstock_mirror_behind_seconds", "mirror", "gauge", "seconds", ("topic",),
           "Time since the standby cluster last had every record of a topic: what a failover loses (RPO).",
           "Above 5: the mirror is behind, or cannot see one of its clusters; its log says which."),
    Metric("penstock_mirror_checkpoint_age_seconds", "mirror", "gauge", "seconds", (),
           "Age of the committed offsets on the standby cluster; absent until the first copy is complete.",
           "A failover would repeat the deliveries of this time."),
    Metric("penstock_mirror_records_total", "mirror", "counter", "records", (),
           "Records that the mirror has stored on the standby cluster.", "Its rate follows the traffic."),
    Metric("penstock_mirror_failing", "mirror", "gauge", "0 or 1", (),
           "1 while the mirror cannot copy, or cannot see one of its clusters.",
           "1: the mirror's log and `manage.py region status` give the reason."),
    Metric("penstock_ingest_producer_replacements_total", "ingest", "counter", "producers", (),
           "Kafka producers replaced after a fatal error; events in flight got 503.",
           "The brokers lost acknowledged records or producer state: check their logs and disks. "
           "The ledger names the lost messages."),
    Metric("penstock_keeper_wanted_applications", "keeper", "gauge", "applications", (),
           "Applications of cells that should run.", "There are more cells."),
    Metric("penstock_keeper_applications", "keeper", "gauge", "applications", (),
           "Applications of cells that run.",
           "Fewer than should run: one does not start; the keeper's log says why."),
    Metric("penstock_keeper_standby_applications", "keeper", "gauge", "applications", (),
           "Standby applications that are ready to take over; 0 without `PENSTOCK_STANDBY_APPLICATIONS`.",
           "With it, fewer than applications for minutes: the keeper's log says why."),
    Metric("penstock_writer_heartbeat_age_seconds", "observer", "gauge", "seconds", _WRITER,
           "Age of the last heartbeat of a driver, lane or ingest replica.", "Above 5: it hangs or has exited."),
    Metric("penstock_writer_running", "observer", "gauge", "0 or 1", _WRITER,
           "1 if its heartbeat reports that it runs; 0 while it starts, drains or fails.", "1: it has started."),
    Metric("penstock_writer_cpu_seconds_total", "observer", "counter", "seconds", _WRITER,
           "CPU time of the writer.", "A rate near 1: the lane is at its limit; add a lane to share the partitions."),
    Metric("penstock_writer_resident_bytes", "observer", "gauge", "bytes", _WRITER,
           "Resident memory of the writer.", "Steady growth: a memory leak; every queue has a limit."),
    Metric("penstock_writer_unsettled_messages", "observer", "gauge", "messages", _WRITER,
           "Messages that a lane has read and not settled.", "At its limit: its destinations are slow."),
    Metric("penstock_writer_partitions", "observer", "gauge", "partitions", _WRITER,
           "Partitions assigned to a lane.", "Other lanes of its kind have exited."),
    Metric("penstock_writer_dropped_spans_total", "observer", "counter", "spans", _WRITER,
           "Trace spans that it could not export since its start.",
           "The collector is unreachable, refuses them or is too slow: sample fewer. No message waits."),
    Metric("penstock_writer_failing_files", "observer", "gauge", "kinds", _WRITER,
           "Kinds of optional files on its host that it cannot use: snapshots, verdicts, crash notes, look-up tables.",
           "The disk is full or read-only: nothing is lost, a restart takes longer and repeats more sends."),
    Metric("penstock_writer_held_pipes", "observer", "gauge", "pipes", _WRITER,
           "Pipes that a process lane holds because a plan, the salt of masks, a look-up table or a topic is missing.",
           "Their pages name the missing part; nothing is lost, and they resume automatically when it arrives."),
    Metric("penstock_observer_records_total", "observer", "counter", "records", ("topic",),
           "Records read from the data plane's reporting topics, by the topic's purpose.",
           "Its rate follows the traffic; at 0 the data plane is silent or Kafka is unreachable."),
    Metric("penstock_observer_behind_seconds", "observer", "gauge", "seconds", (),
           "Age of the newest record when it was read.", "Figures on pages are as old as this."),
    Metric("penstock_observer_store_seconds", "observer", "histogram", "seconds", (),
           "Time to store a batch.", "Postgres is slow: check its locks and its disk."),
    Metric("penstock_observer_sessions_total", "observer", "counter", "sessions", (),
           "Sessions of the Observer; each failure begins a new one.",
           "Postgres or Kafka was unreachable; the log says which."),
    Metric("penstock_observer_open_minutes", "observer", "gauge", "minutes", (),
           "Minutes of pipes that are not sealed yet.", "Messages do not settle: some node makes no progress."),
    Metric("penstock_sealed_minutes_total", "observer", "counter", "minutes", (),
           "Minutes of pipes that were sealed.", "Its rate is the number of pipes with traffic."),
    Metric("penstock_sealed_messages_total", "observer", "counter", "messages", (),
           "Messages in sealed minutes.", "Its rate follows the traffic, some minutes later."),
    Metric("penstock_lost_units_total", "observer", "counter", "units", ("cell",),
           "Units lost in sealed minutes, by the cell that reported the minute last.",
           "Each is listed on its pipe's page, with the node that saw it last."),
    Metric("penstock_cell_changing", "observer", "gauge", "changes", ("cell",),
           "1 while a controller changes the cell: provisioning, scaling, deploying or admission.",
           "A change is in progress; a loss at that time does not page (see UnitsLostDuringChange)."),
    Metric("penstock_waiting_messages", "observer", "gauge", "messages", ("kind",),
           "Messages that wait for a person: dead or held.", "A destination refuses, or is paused or suspended."),
    Metric("penstock_open_alerts", "observer", "gauge", "alerts", ("state",),
           "Unresolved alerts by state.", "A person must act."),
    Metric("penstock_pipes", "observer", "gauge", "pipes", ("state",),
           "Pipes by state.", "There are more pipes in that state."),
    Metric("penstock_web_request_seconds", "web", "histogram", "seconds", ("route", "status"),
           "Response time of pages and API; of streams, only until they begin. The count is the number of requests.",
           "Postgres is slow, or a page costs too much."),
    Metric("penstock_web_refusals_total", "web", "counter", "requests", ("code",),
           "Requests refused before they reached a view: body-slow, body-too-large, busy.",
           "busy: pages are slow, or there are more requests than one process can handle. body-slow: a client sends "
           "slowly."),
    Metric("penstock_web_tail_viewers", "web", "gauge", "viewers", (),
           "Open live tails.", "At 16, further viewers are refused."),
    Metric("penstock_task_seconds", "worker", "histogram", "seconds", ("task", "state"),
           "Duration of control-plane tasks, by final state.",
           "FAILURE: the log says why. No samples at all: beat, Redis or the worker is down."),
)  # fmt: skip
BY_NAME: Final = {metric.name: metric for metric in METRICS}
_HEAD: Final = """# Metrics

Generated from `dataplane/metrics.py` by `make reference`; do not edit this page.

Each process serves its metrics in Prometheus' text format, at `/metrics` of the address in `PENSTOCK_METRICS`
(`host:port`; an empty value turns metrics off). The box gives its processes consecutive ports on 127.0.0.1, from
`PENSTOCK_METRICS_PORT` on, in this order: web, worker, observer, keeper, echo, table-queries, mirror, ingest-1,
ingest-2 and the replicas that the Autoscaler adds. Containers listen on 9100. Lanes and drivers serve no metrics: they
send a heartbeat once a second, and the Observer serves the figures of the heartbeats. No label names a tenant, a pipe
or a message: those have pages.

| name | process | kind | unit | labels | description | when it rises |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the reference page of all metrics, as Markdown."""
    lines = (
        f"| `{m.name}` | {m.part} | {m.kind} | {m.unit} | {', '.join(m.labels)} | {m.says} | {m.rise} |"
        for m in METRICS
    )
    return _HEAD + "\n".join(lines) + "\n"
