"""Metrics over HTTP, as Prometheus would ask for them: only what the list knows, read when somebody asks."""

import urllib.request

import pytest

from dataplane.metrics import METRICS
from dataplane.runtime.board import Board, Reading, process_readings
from localbox.ports import free_ports


def asked(board: Board) -> str:
    port = free_ports(1)[0]
    board.serve({"PENSTOCK_METRICS": f"127.0.0.1:{port}"})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def test_readings_are_taken_when_somebody_asks_and_carry_what_the_list_says_of_them():
    board, count = Board(), iter(range(7, 99))
    board.reads(lambda: [Reading("penstock_ingest_answers_total", next(count), ("202",))])
    text = asked(board)
    assert "# HELP penstock_ingest_answers_total Answers by status, without those to probes.\n" in text
    assert "# TYPE penstock_ingest_answers_total counter\n" in text
    assert 'penstock_ingest_answers_total{status="202"} 7.0\n' in text
    assert 'penstock_ingest_answers_total{status="202"} 8.0\n' in asked(board)


def test_readings_of_one_metric_from_two_places_are_one_family():
    board = Board()
    board.reads(lambda: [Reading("penstock_writer_running", 1, ("c1", "a", "process"))])
    board.reads(lambda: [Reading("penstock_writer_running", 1, ("c1", "b", "process"))])
    text = asked(board)
    assert text.count("# TYPE penstock_writer_running gauge") == 1
    assert text.count("\npenstock_writer_running{") == 2


def test_a_histogram_counts_sums_and_has_buckets():
    board = Board()
    board.histogram("penstock_observer_store_seconds").observe(0.02)
    text = asked(board)
    assert "penstock_observer_store_seconds_count 1.0\n" in text
    assert 'penstock_observer_store_seconds_bucket{le="0.025"} 1.0\n' in text


def test_every_process_tells_of_itself():
    text = asked(Board())
    assert {reading.name for reading in process_readings()} == {m.name for m in METRICS if m.part == "every process"}
    assert "\npenstock_process_resident_bytes " in text


def test_a_name_that_is_not_in_the_list_is_an_error():
    board = Board()
    with pytest.raises(KeyError):
        board.histogram("penstock_surprise_seconds")
    board.reads(lambda: [Reading("penstock_surprise", 1)])
    with pytest.raises(KeyError):
        list(board.collect())


@pytest.mark.parametrize("where", ["", "nowhere", "127.0.0.1:"])
def test_without_an_address_nothing_listens(where: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dataplane.runtime.board.start_http_server", lambda *_: pytest.fail("it listens"))
    Board().serve({"PENSTOCK_METRICS": where})


def test_a_port_that_is_taken_is_told_and_the_process_goes_on(caplog: pytest.LogCaptureFixture):
    port = free_ports(1)[0]
    for _ in range(2):
        Board().serve({"PENSTOCK_METRICS": f"127.0.0.1:{port}"})
    assert "no metrics are served at 127.0.0.1" in caplog.text
