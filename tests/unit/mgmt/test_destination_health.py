"""When a destination counts as failing or delayed, and when as recovered."""

from datetime import UTC, datetime, timedelta

import pytest

from mgmt.deliveries.health import Condition, Health, HealthFigures, HealthPolicy, next_health

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICY = HealthPolicy()
SINCE = NOW - 20 * MINUTE


@pytest.mark.parametrize(
    ("figures", "is_failing", "is_delayed"),
    [
        pytest.param(HealthFigures(), False, False, id="no traffic"),
        pytest.param(HealthFigures(failed=2), False, False, id="two failures are chance"),
        pytest.param(HealthFigures(failed=3), True, False, id="only failures"),
        pytest.param(HealthFigures(delivered=10, failed=10), True, False, id="half of the attempts"),
        pytest.param(HealthFigures(delivered=11, failed=10), False, False, id="less than half"),
        pytest.param(HealthFigures(breaker_open=True), False, False, id="an open breaker without waiting messages"),
        pytest.param(HealthFigures(breaker_open=True, oldest=59 * MINUTE / 60), False, False, id="a short outage"),
        pytest.param(HealthFigures(9_000, 1, True, MINUTE), True, False, id="an open breaker for a minute"),
        pytest.param(HealthFigures(9_000, 0, False, 10 * MINUTE), False, True, id="a message waits"),
        pytest.param(HealthFigures(9_000, 0, False, 9.9 * MINUTE), False, False, id="a message waits not yet too long"),
        pytest.param(HealthFigures(9_000, 0, False, 99 * MINUTE, True), False, False, id="old messages are redriven"),
        pytest.param(HealthFigures(0, 9, False, 99 * MINUTE), True, False, id="one outage is one alert"),
    ],
)
def test_healthy_destination_becomes_failing_or_delayed_at_the_threshold(
    figures: HealthFigures, is_failing: bool, is_delayed: bool
):
    health = next_health(Health(), figures, POLICY, NOW)
    assert (health.failing.since, health.delayed.since) == (NOW if is_failing else None, NOW if is_delayed else None)


@pytest.mark.parametrize(
    ("figures", "is_well"),
    [
        pytest.param(HealthFigures(delivered=90, failed=10), True, id="one in ten fails"),
        pytest.param(HealthFigures(delivered=80, failed=20), False, id="one in five fails"),
        pytest.param(HealthFigures(delivered=90, breaker_open=True), False, id="a breaker is open"),
        pytest.param(HealthFigures(oldest=MINUTE), False, id="messages wait and nothing is tried"),
        pytest.param(HealthFigures(), True, id="nothing is left to send"),
    ],
)
def test_failing_destination_recovers_at_a_stricter_threshold(figures: HealthFigures, is_well: bool):
    health = next_health(Health(failing=Condition(SINCE)), figures, POLICY, NOW)
    assert health.failing == Condition(SINCE, NOW if is_well else None)


def test_recovery_ends_after_five_minutes_and_starts_again_after_a_failure():
    good, bad = HealthFigures(delivered=9), HealthFigures(delivered=9, failed=9)
    health = Health(failing=Condition(SINCE, NOW - 4 * MINUTE))
    assert next_health(health, bad, POLICY, NOW).failing == Condition(SINCE)
    assert next_health(health, good, POLICY, NOW).failing == Condition(SINCE, NOW - 4 * MINUTE)
    assert next_health(health, good, POLICY, NOW + MINUTE).failing == Condition()


@pytest.mark.parametrize(("oldest", "is_well"), [(None, True), (4 * MINUTE, True), (6 * MINUTE, False)])
def test_delay_ends_when_the_oldest_message_is_half_as_old(oldest: timedelta | None, is_well: bool):
    health = next_health(Health(delayed=Condition(SINCE)), HealthFigures(9, oldest=oldest), POLICY, NOW)
    assert health.delayed == Condition(SINCE, NOW if is_well else None)
