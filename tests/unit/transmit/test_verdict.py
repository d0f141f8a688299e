"""The verdict on an attempt: each status and libcurl code is delivered, recoverable, gone or dead."""

import pycurl
import pytest

from dataplane.causes import Cause
from dataplane.transmit.policy.delivery_verdict import CURL_CAUSES, DeliveryOutcome, judge


@pytest.mark.parametrize("status", range(200, 300))
def test_every_2xx_is_delivered(status: int):
    assert judge(status, 0).outcome is DeliveryOutcome.DELIVERED


@pytest.mark.parametrize("status", [status for status in range(400, 500) if status not in (410, 429)])
def test_every_4xx_but_410_and_429_is_dead_and_never_retried(status: int):
    verdict = judge(status, 0)
    assert (verdict.outcome, verdict.cause) == (DeliveryOutcome.DEAD, "rejected")


def test_410_means_that_the_destination_is_gone():
    assert judge(410, 0).outcome is DeliveryOutcome.GONE


@pytest.mark.parametrize(
    ("statuses", "cause"),
    [
        pytest.param(range(100, 200), "informational", id="1xx"),
        pytest.param(range(300, 400), "redirect", id="3xx is not followed"),
        pytest.param([429], "throttled", id="429"),
        pytest.param(range(500, 600), "server-error", id="5xx"),
        pytest.param([600, 999, 42], "protocol", id="no status of HTTP"),
    ],
)
def test_recoverable_status_is_retried_with_its_cause(statuses: list[int], cause: str):
    for status in statuses:
        verdict = judge(status, 0)
        assert (verdict.outcome, verdict.cause) == (DeliveryOutcome.RECOVERABLE, cause), status


@pytest.mark.parametrize("code", range(1, 102))
def test_missing_response_is_recoverable_whatever_the_libcurl_code(code: int):
    verdict = judge(0, code)
    assert verdict.outcome is DeliveryOutcome.RECOVERABLE
    assert isinstance(verdict.cause, Cause)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (pycurl.E_COULDNT_RESOLVE_HOST, "dns"),
        (pycurl.E_COULDNT_CONNECT, "connect"),
        (pycurl.E_OPERATION_TIMEDOUT, "timeout"),
        (pycurl.E_GOT_NOTHING, "no-answer"),
        (pycurl.E_RECV_ERROR, "reset"),
        (pycurl.E_SEND_ERROR, "reset"),
        (pycurl.E_PARTIAL_FILE, "answer-cut"),
        (pycurl.E_SSL_CONNECT_ERROR, "tls"),
        (pycurl.E_PEER_FAILED_VERIFICATION, "tls-certificate"),
        (pycurl.E_URL_MALFORMAT, "url-invalid"),
        (pycurl.E_TOO_MANY_REDIRECTS, "transport"),
    ],
)
def test_libcurl_code_gives_a_cause_that_a_customer_can_act_on(code: int, cause: str):
    assert judge(0, code).cause == cause


@pytest.mark.parametrize("code", sorted(CURL_CAUSES))
def test_response_cut_off_after_its_status_counts_by_its_status(code: int):
    assert judge(200, code).outcome is DeliveryOutcome.DELIVERED
    assert judge(400, code).outcome is DeliveryOutcome.DEAD
    assert judge(503, code).outcome is DeliveryOutcome.RECOVERABLE


def test_address_refused_by_the_guard_is_the_cause_whatever_else_happened():
    assert judge(0, 7, forbidden=True).cause == "destination-forbidden"
