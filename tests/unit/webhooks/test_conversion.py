"""Forms and XML become JSON by the documented mapping, within bounds."""

import encodings
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.webhooks.forms import MAX_FIELDS, FormError, payload_of, read_form
from dataplane.webhooks.xml import ENCODINGS, MAX_DEPTH, MAX_NODES, XmlError, read_xml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"a=1&b=x+y&c=%C3%BC&d=", {"a": "1", "b": "x y", "c": "\u00fc", "d": ""}),
        (b"a=1&b=2&a=3&a=4", {"a": ["1", "3", "4"], "b": "2"}),
        (b"a=1&a=1", {"a": ["1", "1"]}),
        (b"", {}),
    ],
)
def test_form_becomes_an_object_of_texts(body: bytes, value: Any):
    assert read_form(body) == value


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20))
def test_form_keeps_each_value_in_order(pairs: list[tuple[str, str]]):
    found = read_form(urlencode(pairs).encode())
    for name, value in found.items():
        expected = [text for key, text in pairs if key == name]
        assert (value if isinstance(value, list) else [value]) == expected
    assert set(found) == {name for name, _ in pairs}


@pytest.mark.parametrize("body", [b"a", b"a=%ff", b"a=\xff", b"&".join([b"a=1"] * (MAX_FIELDS + 1))])
def test_body_that_is_no_form_is_refused(body: bytes):
    with pytest.raises(FormError):
        read_form(body)


def test_only_a_form_of_nothing_but_payload_has_one():
    assert payload_of({"payload": "{}"}) == "{}"
    assert payload_of({"payload": "{}", "other": ""}) == payload_of({"payload": ["{}", "{}"]}) == ""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (
            b'<order id="7"><item>tea</item><item>cup</item><note/></order>',
            {"order": {"@id": "7", "item": ["tea", "cup"], "note": None}},
        ),
        (b"<a>x</a>", {"a": "x"}),
        (b"<a> <b>1</b> \n</a>", {"a": {"b": "1"}}),
        (b'<a k="v"> text </a>', {"a": {"@k": "v", "#text": "text"}}),
        (b"<a>x<b/>y</a>", {"a": {"b": None, "#text": "xy"}}),
        (b'<s:a xmlns:s="urn:s"><s:b>1</s:b></s:a>', {"s:a": {"@xmlns:s": "urn:s", "s:b": "1"}}),
        (b"<a>&lt;&#65;&amp;<![CDATA[<b>]]></a>", {"a": "<A&<b>"}),
        ('<?xml version="1.0" encoding="iso-8859-1"?><a>\u00fc</a>'.encode("latin-1"), {"a": "\u00fc"}),
        (b"<a><!-- c --><?p i?></a>", {"a": None}),
    ],
)
def test_xml_becomes_json_by_the_documented_mapping(body: bytes, value: Any):
    assert read_xml(body) == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<a>",
        b"<a></b>",
        b"<a/><b/>",
        b"not xml",
        b"\xff\xfe",
        b'<?xml version="1.0" encoding="no-such"?><a/>',
        b"<!DOCTYPE a><a/>",
        b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>',
        b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>',
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a/>',
        b"<a>&undefined;</a>",
        b"<a>" * (MAX_DEPTH + 1) + b"</a>" * (MAX_DEPTH + 1),
        b"<a>" + b"<b/>" * MAX_NODES + b"</a>",
        b"<a>" + b'<b c=""/>' * (MAX_NODES // 2) + b"</a>",
    ],
)
def test_xml_that_is_invalid_hostile_or_too_large_is_refused(body: bytes):
    with pytest.raises(XmlError):
        read_xml(body)


def test_unknown_encodings_leave_nothing_in_memory():
    """Python keeps each encoding name that it has looked up, so a sender must not choose names."""
    before = len(encodings._cache)
    for number in range(50):
        for body, charset in ((b'<?xml version="1.0" encoding="x%d"?><a/>' % number, ""), (b"<a/>", f"y{number}")):
            with pytest.raises(XmlError, match="encodings"):
                read_xml(body, charset)
    assert len(encodings._cache) == before


@pytest.mark.parametrize("charset", sorted(ENCODINGS))
def test_encoding_may_be_declared_by_document_or_media_type_which_prevails(charset: str):
    text = "<a>\u00fc</a>" if charset != "us-ascii" else "<a>u</a>"
    value = {"a": text[3:-4]}
    declared = '<?xml version="1.0" encoding="%s"?>' + text
    assert read_xml((declared % charset).encode(charset)) == value
    assert read_xml(text.encode(charset), charset) == value
    assert read_xml((declared % "ISO-8859-15").encode(charset), charset) == value


def test_deepest_xml_is_accepted():
    assert read_xml(b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(body: bytes):
    for read, error in ((read_form, FormError), (read_xml, XmlError)):
        with suppress(error):
            read(body)


@pytest.mark.parametrize(
    ("read", "unit", "frame"),
    [
        (read_form, b"a%07d=1&", b"%s"),
        (read_form, b"%%41", b"a=%s"),
        (read_form, b"%%41a", b"a=%s"),
        (read_form, b"%%", b"a=%s"),
        (read_xml, b"<b>x</b>", b"<a>%s</a>"),
        (read_xml, b"&lt;", b"<a>%s</a>"),
        (read_xml, b"x\n", b"<a>%s</a>"),
        (read_xml, b' k%07d="v"', b"<a%s/>"),
    ],
)
def test_time_is_linear_in_the_body(read: Any, unit: bytes, frame: bytes):
    """Four times the body takes far less than sixteen times as long; a byte takes less than 80 steps of a loop.

    80 steps of an empty loop take about 0.5 µs: 256 KiB in 0.1 s, on whatever machine.
    """

    def body_of(size: int) -> bytes:
        units = b"".join(unit % n if b"%07d" in unit else unit.replace(b"%%", b"%") for n in range(size // len(unit)))
        return frame % units.rstrip(b"&")

    def cost_s(work: Callable[[bytes], Any], body: bytes) -> float:
        best_s = 9.0
        for _ in range(3):
            began_s = time.thread_time()
            with suppress(FormError, XmlError):
                work(body)
            best_s = min(best_s, time.thread_time() - began_s)
        return best_s

    def step_through(body: bytes) -> None:
        for _ in body:
            pass

    small, large = cost_s(read, body_of(64 * 1024)), cost_s(read, body_of(256 * 1024))
    assert large < 80 * cost_s(step_through, body_of(256 * 1024))
    assert large < 10 * small + 0.002
