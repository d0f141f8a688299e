"""Parsers for bounded, strict JSON and for row files, and serializers that refuse unknown fields."""

import json
from collections.abc import Mapping
from typing import IO, Any, Final, NamedTuple

from django.conf import settings
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError
from rest_framework.parsers import BaseParser

from dataplane.spec.schema import MAX_BYTES
from mgmt.lookups.row_files import RowFormat
from mgmt.web.problems import ProblemError

MAX_SCHEMA_BYTES: Final = MAX_BYTES + 1_024  # the document and the object around it


class BoundedJSONParser(BaseParser):
    """Parser of UTF-8 JSON up to DATA_UPLOAD_MAX_MEMORY_SIZE bytes; refuses duplicate keys, NaN and deep nesting."""

    media_type = "application/json"
    max_bytes: int | None = None

    def parse(
        self, stream: IO[bytes], _media_type: str | None = None, _context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the value. Raises ProblemError body-too-large, or ParseError with the position."""
        limit = self.max_bytes or settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise ProblemError("body-too-large", f"The body may have at most {limit} bytes.")
        try:
            return json.loads(body.decode(), object_pairs_hook=_pairs_once, parse_constant=_no_constant)
        except json.JSONDecodeError as exc:
            raise ParseError(f"line {exc.lineno} column {exc.colno}: {exc.msg}") from exc
        except UnicodeDecodeError as exc:
            raise ParseError(f"byte {exc.start}: needs UTF-8") from exc
        except RecursionError as exc:
            raise ParseError("nested too deeply") from exc
        except ValueError as exc:
            raise ParseError("contains a duplicate key, NaN, Infinity, or a number that is too long") from exc


class UncompressedParser(BoundedJSONParser):
    """JSON parser that accepts no compressed body, so that none can expand."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """Return the value. Raises ProblemError also for a body with Content-Encoding."""
        request = (context or {}).get("request")
        if request is not None and request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ProblemError("media-type", "Send the schema uncompressed, without Content-Encoding.")
        return super().parse(stream, media_type, context)


class SchemaParser(UncompressedParser):
    """JSON parser for the schema of a source, with a smaller limit."""

    max_bytes = MAX_SCHEMA_BYTES


class RowFile(NamedTuple):
    """Upload of rows that has not been read yet."""

    stream: IO[bytes]
    form: RowFormat


class CsvParser(BaseParser):
    """Parser that passes the stream on: rows are read and checked one at a time when they are stored."""

    media_type = "text/csv"

    def parse(
        self, stream: IO[bytes], _media_type: str | None = None, _context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the unread rows as a RowFile."""
        return RowFile(stream, "csv")


class JsonLinesParser(BaseParser):
    """Parser that passes a stream of JSON lines on."""

    media_type = "application/x-ndjson"

    def parse(
        self, stream: IO[bytes], _media_type: str | None = None, _context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the unread rows as a RowFile."""
        return RowFile(stream, "jsonl")


def _pairs_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)


class StrictSerializer(serializers.Serializer[Any]):
    """Serializer that refuses unknown fields, so that a misspelt name is an error."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the checked value. Raises ValidationError that names unknown fields together with the other errors."""
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        try:
            value = super().to_internal_value(data)
        except ValidationError as exc:
            raise ValidationError(_unknown(unknown) | dict(exc.detail)) from exc  # type: ignore[arg-type]
        if unknown:
            raise ValidationError(_unknown(unknown))
        return value


def _unknown(names: list[str]) -> dict[str, Any]:
    return {name: [ErrorDetail("Unknown field. Remove it.", code="unknown-field")] for name in names}
