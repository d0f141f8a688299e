"""The Avro project's own cases (tests/data/avro): canonical form, fingerprint and schema compatibility."""

import hashlib
import io
import json
import re
import struct
from typing import Any

import fastavro
import pytest
from fastavro._schema_common import rabin_fingerprint

from dataplane.schemas.compatibility import unreadable
from dataplane.schemas.parse import parse
from dataplane.schemas.types import ParsedSchema, SchemaType
from localbox.settings import ROOT

DATA = ROOT / "tests" / "data" / "avro"
CASES = json.loads((DATA / "schema-compatibility.json").read_text())


def canonical_cases() -> list[tuple[str, str, str | None]]:
    """Return input, canonical form and CRC-64-AVRO fingerprint of each case of schema-tests.txt."""
    text = re.sub(r"^//.*\n", "", (DATA / "schema-tests.txt").read_text(), flags=re.MULTILINE)
    found = []
    for part in text.split("<<INPUT")[1:]:
        case, _, rest = part.partition("<<canonical")
        canonical, _, fingerprint = rest.partition("<<fingerprint")
        source = case.replace("\nINPUT", "").strip()
        found.append((source, canonical.strip(), fingerprint.strip() or None))
    return found


def avro(schema: Any) -> ParsedSchema:
    return parse(SchemaType.AVRO, json.dumps(schema))


def test_all_canonical_cases_are_read():
    cases = canonical_cases()
    assert len(cases) == 34
    assert sum(fingerprint is not None for _, _, fingerprint in cases) == 26


@pytest.mark.parametrize(("source", "canonical", "fingerprint"), canonical_cases())
def test_canonical_form_and_fingerprint(source: str, canonical: str, fingerprint: str | None):
    found = parse(SchemaType.AVRO, source)
    assert found.canonical == canonical
    assert found.fingerprint == hashlib.sha256(canonical.encode()).hexdigest()
    if fingerprint is not None:
        expected = int(fingerprint).to_bytes(8, "little", signed=True).hex()
        assert rabin_fingerprint(found.canonical.encode()) == expected


def test_canonical_form_of_the_whole_document_is_the_same():
    for source, canonical, _ in canonical_cases():
        assert parse(SchemaType.AVRO, parse(SchemaType.AVRO, source).document).canonical == canonical


def test_all_compatibility_cases_are_read():
    assert [len(CASES[name]) for name in ("compatible", "incompatible", "decoding")] == [79, 65, 17]


@pytest.mark.parametrize("case", CASES["compatible"], ids=lambda case: f"{case['reader']} {case['writer']}"[:80])
def test_compatible_pair(case: dict[str, Any]):
    assert unreadable(avro(case["reader"]), avro(case["writer"])) == ()


@pytest.mark.parametrize("case", CASES["incompatible"], ids=lambda case: f"{case['reader']} {case['writer']}"[:80])
def test_incompatible_pair_has_the_reasons_and_places_of_java(case: dict[str, Any]):
    found = unreadable(avro(case["reader"]), avro(case["writer"]))
    # Java writes the place of the whole schema as "/"; in a JSON pointer it is empty.
    expected = [(one["reason"], one["location"].removesuffix("/")) for one in case["found"]]
    assert [(one.reason, one.path) for one in found] == expected
    assert all(one.message and one.reader and one.writer for one in found)


@pytest.mark.parametrize("case", CASES["decoding"], ids=lambda case: f"{case['reader']} {case['writer']}"[:80])
def test_value_is_read_or_the_pair_is_reported(case: dict[str, Any]):
    reader, writer = avro(case["reader"]), avro(case["writer"])
    written = io.BytesIO()
    fastavro.schemaless_writer(written, json.loads(writer.document), case["datum"])
    if case["decoded"] == "unreadable":
        assert unreadable(reader, writer)
        return
    written.seek(0)
    read = fastavro.schemaless_reader(written, json.loads(writer.document), json.loads(reader.document))
    if case["reader"] == "float":  # Python's floats are doubles
        read = struct.unpack("f", struct.pack("f", read))[0]
    assert read == case["decoded"]
