"""Decoding gives the same values as before, and takes about the same time for every number."""

import json
import math
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.stages.decoding import decode_json
from tests.support.cpu import cpu_s

LARGE = 256 * 1024


def array_of(text: str) -> bytes:
    return ("[" + ",".join([text] * (LARGE // (len(text) + 1))) + "]").encode()


@pytest.mark.parametrize(
    "text",
    [
        *("1e289", "1e-00308", "5e-324", "2.2250738585072011e-308", "-1.7976931348623157e+308", "9007199254740993.0"),
        *("8.40438436419143923950E300", "3.00000000000000038768e+99", "9" * 4_300),
        *("0." + "0" * 250 + "1", "0." + "0" * 400 + "1"),
    ],
    ids=lambda text: text[:30],
)
def test_no_number_takes_much_longer_to_decode_than_any_other(text: str):
    usual_s = cpu_s(lambda: decode_json(array_of("12345.678")))
    assert cpu_s(lambda: decode_json(array_of(text)), 60 * usual_s) < 60 * usual_s  # msgspec takes 200 times as long
    assert decode_json(array_of(text))[0] == json.loads(text)


long_text = "x" * 3_000
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30)


@given(
    st.recursive(
        numbers | st.text() | st.none() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_value_in_a_long_text_is_decoded_as_in_a_short_one(value: Any):
    text = json.dumps(value)
    assert decode_json(f'["{long_text}",{text}]'.encode())[1] == msgspec.json.decode(text.encode()) == value


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(17, 40))
def test_number_between_two_doubles_is_rounded_as_in_python(number: float, digits: int):
    between = (
        (Fraction(number) + Fraction(math.nextafter(number, math.inf))) / 2 if abs(number) < 1e308 else Fraction(number)
    )
    text = _written(between, digits)
    assert decode_json(f'["{long_text}",{text}]'.encode())[1] == float(text)


def _written(number: Fraction, digits: int) -> str:
    """Return the first digits of a number and its exponent."""
    sign, number = ("-" if number < 0 else ""), abs(number)
    if not number:
        return "0.0"
    exponent = math.floor(math.log10(number.numerator) - math.log10(number.denominator))
    mantissa = number / Fraction(10) ** exponent
    whole = str(int(mantissa * 10**digits))
    return f"{sign}{whole[0]}.{whole[1:] or '0'}e{exponent + len(whole) - 1 - digits}"


@pytest.mark.parametrize("text", [b"1e400", b"-1e999", b"NaN", b"1.", b"01", b"1e", b"[1e300", b"1e309"])
def test_invalid_number_is_refused_in_a_long_text_too(text: bytes):
    for body in (text, b'["%b",1e300,%b]' % (long_text.encode(), text)):
        with pytest.raises(msgspec.DecodeError):
            decode_json(body)
