"""Ambiguous JSON is refused with the byte of the error; everything else is decoded unchanged."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.strictjson import parse


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b'{"a":', "json-invalid", id="broken"),
        pytest.param(b'{"a":1}}', "json-invalid", id="more than one value"),
        pytest.param(b"{'a':1}", "json-invalid", id="single quotes"),
        pytest.param(b'{"a":1,}', "json-invalid", id="trailing comma"),
        pytest.param(b"", "json-invalid", id="empty body"),
        pytest.param(b"   ", "json-invalid", id="blanks only"),
        pytest.param(b'\xef\xbb\xbf{"a":1}', "json-invalid", id="byte order mark"),
        pytest.param('{"a":1}'.encode("utf-16"), "json-invalid", id="UTF-16"),
        pytest.param('{"a":1}'.encode("utf-16-le"), "json-invalid", id="UTF-16 without a mark"),
        pytest.param(b'{"a":"\xff"}', "json-invalid", id="not UTF-8"),
        pytest.param(b'{"a":"\xed\xa0\x80"}', "json-invalid", id="a surrogate as bytes"),
        pytest.param(b'{"a":"\xc0\xaf"}', "json-invalid", id="overlong form"),
        pytest.param(b'{"a":NaN}', "json-invalid", id="NaN"),
        pytest.param(b'{"a":Infinity}', "json-invalid", id="Infinity"),
        pytest.param(b'{"a":-Infinity}', "json-invalid", id="minus Infinity"),
        pytest.param(b'{"a":1e400}', "json-invalid", id="a number out of range"),
        pytest.param(b'{"a":' + b"9" * 5_000 + b"}", "json-invalid", id="5,000 digits"),
        pytest.param(b'{"a":"\\ud800"}', "json-invalid", id="lone surrogate"),
        pytest.param(b'{"a":"\\udc00\\ud800"}', "json-invalid", id="surrogates the wrong way round"),
        pytest.param(b'{"a":"\x01"}', "json-invalid", id="bare control character"),
        pytest.param(b'{"a":1,"a":2}', "json-duplicate-key", id="key twice"),
        pytest.param(b'{"a":1,"a":1}', "json-duplicate-key", id="key twice with one value"),
        pytest.param(b'{"a":1, "a" :2}', "json-duplicate-key", id="blank before the colon"),
        pytest.param(b'{"a"\r\n:1,"a"\t:2}', "json-duplicate-key", id="other white space before the colon"),
        pytest.param(b'[{"b":{"a":1,"\\u0061":2}}]', "json-duplicate-key", id="one of the two escaped"),
        pytest.param(b'{"a\\u0022":1,"a\\"":2}', "json-duplicate-key", id="a quote in the key, written in two ways"),
        pytest.param(b'{"a":1,"a":2,"b":"x\\"\\u003a"}', "json-duplicate-key", id="made up for by an escaped colon"),
        pytest.param(b'{"a":1,"a":2,"b":"x\\"\\u003A"}', "json-duplicate-key", id="made up for by another one"),
        pytest.param(b'{"a":1,"a":2,"b":"x\\u0022:"}', "json-duplicate-key", id="made up for by an escaped quote"),
        pytest.param(b"[" * 65 + b"]" * 65, "json-too-deep", id="65 levels"),
        pytest.param(b'{"a":' * 65 + b"1" + b"}" * 65, "json-too-deep", id="65 levels of objects"),
        pytest.param(b'["]",' * 65 + b"1" + b"]" * 65, "json-too-deep", id="65 levels, closing brackets in strings"),
        pytest.param(b'["]",' * 900 + b"1" + b"]" * 900, "json-too-deep", id="900 levels of the same"),
        pytest.param(
            b'["\\\\",' * 65 + b"1" + b"]" * 65, "json-too-deep", id="65 levels, strings that end in a backslash"
        ),
    ],
)
def test_invalid_or_ambiguous_json_is_refused(body: bytes, code: str):
    with pytest.raises(EventRejectedError) as refused:
        parse(body)
    assert (refused.value.status, refused.value.code) == (400, code)


@pytest.mark.parametrize(
    ("body", "byte"), [(b'{"a":1}x', 8), (b'{"a":tru}', 9), (b'\n\n{"a"=1}', 6), (b"", 0), (b'{"a"', 4)]
)
def test_broken_json_is_refused_with_the_byte_offset(body: bytes, byte: int):
    with pytest.raises(EventRejectedError, match=rf"\(byte {byte}\)"):
        parse(body)


def test_error_detail_contains_nothing_of_the_payload():
    with pytest.raises(EventRejectedError) as refused:
        parse(b'{"secret-field":"secret-value"')
    assert "secret" not in refused.value.detail


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_hundred_thousand_levels_are_refused_at_once(body: bytes):
    began = time.thread_time()
    with pytest.raises(EventRejectedError) as refused:
        parse(body)
    assert refused.value.status == 400
    assert time.thread_time() - began < 2


@pytest.mark.parametrize(
    ("body", "value"),
    [
        pytest.param(b'{"a":"\\u0000"}', {"a": "\0"}, id="NUL in a value is kept"),
        pytest.param(b"[" * 64 + b"]" * 64, None, id="64 levels"),
        pytest.param(b'{"a":"' + b"[" * 100 + b'"}', {"a": "[" * 100}, id="brackets in text are no levels"),
        pytest.param(b'{"a":"\\"[[[' + b"{" * 100 + b'"}', None, id="brackets after an escaped quote"),
        pytest.param(b'{"a\\\\":["' + b"[" * 100 + b'"]}', None, id="brackets after an escaped backslash"),
        pytest.param(b'{"a":{"a":1},"b":[{"a":1},{"a":2}]}', None, id="one key in several objects"),
        pytest.param(b'{"a\\":b":1,"c":"d\\":e"}', {'a":b': 1, "c": 'd":e'}, id="what looks like a key in text"),
        pytest.param(b'{"a":"\\ud83d\\ude00"}', {"a": "\U0001f600"}, id="a pair of surrogates"),
        pytest.param(b' {"a" : 1} \n', {"a": 1}, id="white space"),
        pytest.param(b"3", 3, id="a bare number"),
        pytest.param(b"null", None, id="null"),
    ],
)
def test_valid_json_is_accepted(body: bytes, value: Any):
    assert parse(body) == (json.loads(body) if value is None else value)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)


@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_any_serialized_value_is_decoded_to_the_same_value(value: Any, ascii_only: bool, indent: int | None):
    assert parse(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()) == value


@given(values, values, st.text(max_size=6), st.text(max_size=10))
def test_duplicate_key_is_refused_for_any_other_content(one: Any, other: Any, key: str, text: str):
    name = json.dumps(key)
    rest = json.dumps({"rest": text})[1:-1] if key != "rest" else '"more":1'
    body = f"{{{name}:{json.dumps(one)},{rest},{name}:{json.dumps(other)}}}"
    with pytest.raises(EventRejectedError) as refused:
        parse(body.encode())
    assert refused.value.code == "json-duplicate-key"
