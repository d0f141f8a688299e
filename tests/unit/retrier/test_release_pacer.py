"""Release pace of a destination: independent of others, in order, without delay after a silence."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.retrier.release_pacer import MANY, DestinationKey, ReleasePacer

S = 1_000_000
NOW = 1_790_000_000 * S
CRM, LOG = DestinationKey("p", "crm"), DestinationKey("p", "log")


def test_releases_of_one_second_are_immediate_after_a_silence():
    pace = ReleasePacer(10)
    assert [pace.moment_us(CRM, NOW) for _ in range(10)] == [NOW] * 10
    assert pace.moment_us(CRM, NOW) == NOW + S // 10


def test_hundred_thousand_releases_of_one_destination_do_not_delay_another():
    pace = ReleasePacer(1_000)
    moments = [pace.moment_us(CRM, NOW) for _ in range(100_000)]
    assert moments == sorted(moments)
    assert moments[-1] == NOW + 99 * S
    assert pace.moment_us(LOG, NOW) == NOW


@given(st.floats(0.5, 10_000), st.lists(st.integers(0, 3 * S), min_size=1, max_size=200))
def test_no_second_has_more_than_twice_the_rate(rate: float, pauses_us: list[int]):
    pace, now_us, moments = ReleasePacer(rate), NOW, []
    for pause_us in pauses_us:
        now_us += pause_us
        moment = pace.moment_us(CRM, now_us)
        assert moment >= now_us
        moments.append(moment)
    for moment in moments:
        assert sum(moment <= other < moment + S for other in moments) <= 2 * rate + 2


def test_idle_destinations_are_dropped():
    pace = ReleasePacer(1_000)
    for number in range(MANY + 1):
        pace.moment_us(DestinationKey("p", str(number)), NOW + number * 1_000)
    assert len(pace._next_us) <= 2_001
