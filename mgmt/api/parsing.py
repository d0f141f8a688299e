"""Reading bodies: bounded JSON without surprises, and serializers that refuse unknown fields."""

import json
from collections.abc import Mapping
from typing import IO, Any, Final, NamedTuple

from django.conf import settings
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError
from rest_framework.parsers import BaseParser

from dataplane.spec.schema import MAX_BYTES
from mgmt.api.problems import ProblemError
from mgmt.services.row_files import RowFormat

MAX_SCHEMA_BYTES: Final = MAX_BYTES + 1_024  # the document and what it is wrapped in


class BoundedJSONParser(BaseParser):
    """UTF-8 JSON of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes, no key twice, no NaN, no depth beyond reading."""

    media_type = "application/json"
    max_bytes: int | None = None

    def parse(
        self, stream: IO[bytes], _media_type: str | None = None, _context: Mapping[str, Any] | None = None
    ) -> Any:
        """The value. Raises ProblemError body-too-large, ParseError with the position."""
        limit = self.max_bytes or settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise ProblemError("body-too-large", f"The body may have {limit} bytes.")
        try:
            return json.loads(body.decode(), object_pairs_hook=_pairs_once, parse_constant=_no_constant)
        except json.JSONDecodeError as exc:
            raise ParseError(f"line {exc.lineno} column {exc.colno}: {exc.msg}") from exc
        except UnicodeDecodeError as exc:
            raise ParseError(f"byte {exc.start}: needs UTF-8") from exc
        except RecursionError as exc:
            raise ParseError("nested too deep") from exc
        except ValueError as exc:
            raise ParseError("holds a key twice, NaN or Infinity, or a number too long to read") from exc


class SchemaParser(BoundedJSONParser):
    """The same for schemas, which are smaller and come as they are: nothing that unfolds is read."""

    max_bytes = MAX_SCHEMA_BYTES

    def parse(self, stream: IO[bytes], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """The value. Raises ProblemError also for a body that is packed."""
        request = (context or {}).get("request")
        if request is not None and request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ProblemError("media-type", "Send the schema as it is, without Content-Encoding.")
        return super().parse(stream, media_type, context)


class RowFile(NamedTuple):
    """An upload of rows, not read yet."""

    stream: IO[bytes]
    form: RowFormat


class CsvParser(BaseParser):
    """Hands the stream on: rows are read and checked one at a time, where they are stored."""

    media_type = "text/csv"

    def parse(
        self, stream: IO[bytes], _media_type: str | None = None, _context: Mapping[str, Any] | None = None
    ) -> Any:
        """The rows to come, as a RowFile."""
        return RowFile(stream, "csv")


class JsonLinesParser(BaseParser):
    """The same for JSON lines."""

    media_type = "application/x-ndjson"

    def parse(
        self, stream: IO[bytes], _media_type: str | None = None, _context: Mapping[str, Any] | None = None
    ) -> Any:
        """The rows to come, as a RowFile."""
        return RowFile(stream, "jsonl")


def _pairs_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)


class StrictSerializer(serializers.Serializer[Any]):
    """A body in which every field must be known: a misspelt one is an error, not silence."""

    def to_internal_value(self, data: Any) -> Any:
        """As usual, and unknown fields are refused with the others."""
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        try:
            value = super().to_internal_value(data)
        except ValidationError as exc:
            raise ValidationError(_unknown(unknown) | dict(exc.detail)) from exc  # type: ignore[arg-type]
        if unknown:
            raise ValidationError(_unknown(unknown))
        return value


def _unknown(names: list[str]) -> dict[str, Any]:
    return {name: [ErrorDetail("There is no such field. Take it out.", code="unknown-field")] for name in names}
