"""Traffic by version is counted in memory and reported after some seconds, or at once if there is much of it."""

from dataplane.ingest.version_traffic import MANY, REPORT_S, TrafficBook
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, decode_audit
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.version_traffic import HOUR_US, VersionTraffic


class Clock:
    """Clock that the test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_events_are_counted_by_source_version_and_hour():
    clock = Clock()
    book = TrafficBook(clock)
    book.accept("p", "shop", ["a@1", "a@2", "a@1", ""], HOUR_US - 1)
    book.accept("p", "shop", ["a@1"], HOUR_US)
    book.accept("p", "till", iter(["a@1"]), HOUR_US)
    book.reject("p", "shop", "a@2", 0)
    book.reject("p", "shop", "", 0)
    book.reject("q", "shop", "b@7", 0)
    clock.now_s = REPORT_S
    assert book.take_if_due() == [
        VersionTraffic("p", "shop", "a@1", 0, 2, 0),
        VersionTraffic("p", "shop", "a@1", 1, 1, 0),
        VersionTraffic("p", "shop", "a@2", 0, 1, 1),
        VersionTraffic("p", "till", "a@1", 1, 1, 0),
        VersionTraffic("q", "shop", "b@7", 0, 0, 1),
    ]


def test_report_is_due_after_some_seconds_and_only_if_there_is_something_to_report():
    clock = Clock()
    book = TrafficBook(clock)
    clock.now_s = REPORT_S
    assert (book.is_due, book.take_if_due()) == (False, [])
    book.accept("p", "shop", ["a@1"], 0)
    assert (book.is_due, len(book.take_if_due())) == (True, 1)
    book.reject("p", "shop", "a@1", 0)
    assert (book.is_due, book.take_if_due()) == (False, [])
    clock.now_s = 2 * REPORT_S
    assert [(one.accepted, one.rejected) for one in book.take_if_due()] == [(0, 1)]


def test_many_versions_make_a_report_due_at_once_and_it_is_split():
    book = TrafficBook(Clock())
    book.accept("p", "shop", [f"{'s' * 200}{number}@1" for number in range(MANY - 1)], 0)
    due = [book.is_due]
    book.accept("p", "shop", ["more@1"], 0)
    assert [*due, book.is_due] == [False, True]
    reports = book.take_if_due()
    audit = AuditRecord(
        AUDIT_VERSION, "", "ingest-1", "ingest", 1, [], [], [], [], run="r", sequence=3, traffic=reports
    )
    parts = [decode_audit(part) for part in encode_parts(audit, 100_000)]
    assert [one for part in parts for one in part.traffic] == reports
    assert [part.sequence for part in parts] == list(range(3, 3 + len(parts)))
    assert len(parts) > 4
