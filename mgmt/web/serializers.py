"""Bodies of the API that several features share: problems and pages of lists."""

from typing import Any

from rest_framework import serializers


class FieldErrorOut(serializers.Serializer[Any]):
    """One error of a request: a field by JSON pointer, or a query parameter by name."""

    pointer = serializers.CharField(required=False, help_text="JSON pointer into the body, as a URI fragment.")
    parameter = serializers.CharField(required=False)
    detail = serializers.CharField()
    code = serializers.CharField()


class ProblemOut(serializers.Serializer[Any]):
    """An error (RFC 9457). `code` is stable; `type` is the URL of its help page."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    errors = FieldErrorOut(many=True)  # type: ignore[assignment]


class ProblemPageOut(serializers.Serializer[Any]):
    """Meaning of an error code."""

    code = serializers.CharField()
    status = serializers.IntegerField()
    title = serializers.CharField()
    meaning = serializers.CharField()


class PageOut(serializers.Serializer[Any]):
    """A page of a list: follow `next` until it is null."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
