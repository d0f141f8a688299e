"""An unavailable broker does not flood the logs."""

import pytest
from confluent_kafka import KafkaError

from dataplane.runtime.kafka import ERROR_LOG_S, ErrorLog, ingest_producer


def test_error_log_writes_each_error_code_once_per_period_with_the_number_skipped(caplog: pytest.LogCaptureFixture):
    now = [100.0]
    report = ErrorLog(lambda: now[0])
    for _ in range(50):
        report(KafkaError(KafkaError._TRANSPORT, "Connection refused (after 0ms)"))
    report(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    now[0] += ERROR_LOG_S
    report(KafkaError(KafkaError._TRANSPORT, "Connection refused (after 1ms)"))
    lines = [record.message for record in caplog.records]
    assert [line[line.rindex("(") :] for line in lines] == [
        "(0 more since the last line)",
        "(0 more since the last line)",
        "(49 more since the last line)",
    ]
    assert "_TRANSPORT" in lines[0]
    assert "_ALL_BROKERS_DOWN" in lines[1]


def test_client_of_an_unavailable_broker_logs_one_line(caplog: pytest.LogCaptureFixture):
    producer = ingest_producer("127.0.0.1:1", "away", timeout_ms=1_000)
    producer.produce("topic", b"value")
    assert producer.flush(5) == 0, "given up after its timeout"
    assert len([record for record in caplog.records if "_TRANSPORT" in record.message]) == 1
