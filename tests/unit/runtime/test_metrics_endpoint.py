"""Metrics over HTTP, as Prometheus scrapes them: only listed metrics, read at each scrape."""

import urllib.request

import pytest

from dataplane.metrics import METRICS
from dataplane.runtime.telemetry.metrics_registry import MetricReading, MetricsRegistry, process_readings
from localbox.ports import free_ports


def asked(board: MetricsRegistry) -> str:
    port = free_ports(1)[0]
    board.serve({"PENSTOCK_METRICS": f"127.0.0.1:{port}"})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def test_readings_are_collected_at_each_scrape_with_the_listed_help_and_type():
    board, count = MetricsRegistry(), iter(range(7, 99))
    board.reads(lambda: [MetricReading("penstock_ingest_answers_total", next(count), ("202",))])
    text = asked(board)
    assert "# HELP penstock_ingest_answers_total Responses by status, without health checks.\n" in text
    assert "# TYPE penstock_ingest_answers_total counter\n" in text
    assert 'penstock_ingest_answers_total{status="202"} 7.0\n' in text
    assert 'penstock_ingest_answers_total{status="202"} 8.0\n' in asked(board)


def test_readings_of_one_metric_from_two_sources_form_one_family():
    board = MetricsRegistry()
    board.reads(lambda: [MetricReading("penstock_writer_running", 1, ("c1", "a", "process"))])
    board.reads(lambda: [MetricReading("penstock_writer_running", 1, ("c1", "b", "process"))])
    text = asked(board)
    assert text.count("# TYPE penstock_writer_running gauge") == 1
    assert text.count("\npenstock_writer_running{") == 2


def test_histogram_exposes_its_count_and_buckets():
    board = MetricsRegistry()
    board.histogram("penstock_observer_store_seconds").observe(0.02)
    text = asked(board)
    assert "penstock_observer_store_seconds_count 1.0\n" in text
    assert 'penstock_observer_store_seconds_bucket{le="0.025"} 1.0\n' in text


def test_every_process_exports_its_own_metrics():
    text = asked(MetricsRegistry())
    assert {reading.name for reading in process_readings()} == {m.name for m in METRICS if m.part == "every process"}
    assert "\npenstock_process_resident_bytes " in text


def test_unlisted_metric_name_is_an_error():
    board = MetricsRegistry()
    with pytest.raises(KeyError):
        board.histogram("penstock_surprise_seconds")
    board.reads(lambda: [MetricReading("penstock_surprise", 1)])
    with pytest.raises(KeyError):
        list(board.collect())


@pytest.mark.parametrize("where", ["", "nowhere", "127.0.0.1:"])
def test_no_metrics_server_starts_without_an_address(where: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "dataplane.runtime.telemetry.metrics_registry.start_http_server", lambda *_: pytest.fail("it listens")
    )
    MetricsRegistry().serve({"PENSTOCK_METRICS": where})


def test_occupied_port_is_logged_and_the_process_continues(caplog: pytest.LogCaptureFixture):
    port = free_ports(1)[0]
    for _ in range(2):
        MetricsRegistry().serve({"PENSTOCK_METRICS": f"127.0.0.1:{port}"})
    assert "could not serve metrics at 127.0.0.1" in caplog.text
