"""Formatting of figures and causes."""

import pytest

from dataplane.causes import Cause
from dataplane.ledger.bins import Bin
from mgmt.deliveries.cause_wording import BINS, CAUSES, failure_in_words, problem_in_words
from mgmt.deliveries.queries.attempts import split_us
from mgmt.ledger.queries.bucket_range import rate_per_s
from mgmt.templatetags.figures import count, delivered_share, duration, plain, rate, seconds, share, spark

THIN = "\u202f"


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (420, "0.4 ms"),
        (38_400, "38 ms"),
        (20, "<0.1 ms"),
        (0, "0.0 ms"),
        (1_240_000, "1.2 s"),
        (180_000_000, "3 min"),
        (19_800_000_000, "5.5 h"),
        (172_800_000_000, "2 d"),
        (-1_500, "-1.5 ms"),
        (None, "-"),
    ],
)
def test_durations_are_formatted_with_their_unit(us: int | None, text: str):
    assert duration(us) == text.replace(" ", THIN)


def test_counts_rates_shares_and_settings_are_formatted():
    assert count(1_481_009) == f"1{THIN}481{THIN}009"
    assert (rate(0.0), rate(0.02), rate(3.25), rate(412.4)) == ("0", "<0.1", "3.2", "412")
    assert share(0.795) == f"79.5{THIN}%"
    assert (seconds(86_400), seconds(15.0), seconds(1.5)) == (f"1{THIN}d", f"15{THIN}s", f"1.5{THIN}s")


def test_rate_without_a_measurement_is_a_dash_and_no_number_for_scripts():
    assert rate(None) == "-"
    assert (plain(None), plain(0), plain(0.5), plain(1_234_567)) == ("", "0", "0.5", "1234567")


def test_delivered_share_is_100_percent_only_if_all_are_delivered():
    shares = [delivered_share(value).replace(THIN, " ") for value in (1, 0.99999, 0.9994, 0.6)]
    assert shares == ["100 %", "> 99.9 %", "99.9 %", "60.0 %"]


def test_sparkline_has_a_bar_for_each_value_and_names_the_range():
    image = spark([0.0, 2.0, None, 1.0], "Events in", "rate")
    assert 'aria-label="Events in: 0 to 2.0, last 1.0"><title>Events in: 0 to 2.0, last 1.0</title>' in image
    assert 'd="M0 16v-1h4V16zM5 16v-16h4V16zM15 16v-8h4V16z"' in image
    assert 'viewBox="0 0 20 16"' in image


def test_sparkline_of_shares_is_drawn_against_the_whole():
    assert 'd="M0 16v-8h4V16zM5 16v-12h4V16z"' in spark([0.5, 0.75], "Delivered", "share")


def test_sparkline_without_values_or_with_zeros_only_is_valid():
    assert spark([None, None], "Lag") == '<span class="spark" role="img" aria-label="Lag: no data"></span>'
    assert 'd="M0 16v-1h4V16z"' in spark([0], "Lag", "lag")


def test_every_verdict_cause_and_every_bin_has_a_sentence():
    assert set(Cause) == set(CAUSES)
    assert {str(name) for name in Bin} == set(BINS)


def test_problem_is_named_by_the_response_status_or_else_by_its_cause():
    said = {"bin_": "dead", "where": "crm", "cause": "rejected", "reason": "rejected"}
    assert problem_in_words(**said, status=401) == "crm: returned 401"
    assert problem_in_words(**said | {"cause": "", "reason": "timeout"}, status=0) == "crm: timed out"


def test_attempt_is_split_at_the_phases_that_it_reached():
    marks = {"dns": 300, "connect": 1_200, "tls": 0, "first_byte": 31_200, "total": 31_400}
    assert split_us(marks) == (("dns", 300), ("connect", 900), ("first byte", 30_000), ("rest", 200))


def test_rate_counts_the_last_sixty_seconds():
    assert rate_per_s(600, 0, 0) == 10
    assert rate_per_s(600, 300, 30) == 10
    assert rate_per_s(0, 60, 60) == 1


def test_attempt_without_a_response_has_no_first_byte():
    marks = {"dns": 100, "connect": 0, "tls": 0, "first_byte": 300, "total": 400}
    assert split_us(marks, answered=False) == (("dns", 100), ("until it failed", 300))


@pytest.mark.parametrize(
    ("reason", "status", "words", "detail"),
    [
        ("connect: Failed to connect to 127.0.0.1:9", 0, "No connection", "Failed to connect to 127.0.0.1:9"),
        ("server-error: returned 503", 503, "Returned 503", ""),
        ("expired", 503, "Not delivered within the retry period", ""),
        ("something new: told in full", 0, "something new: told in full", ""),
        ("", 204, "", ""),
    ],
)
def test_failure_reason_is_put_in_words_with_its_detail_separate(reason: str, status: int, words: str, detail: str):
    assert failure_in_words(reason, status) == (words, detail)
