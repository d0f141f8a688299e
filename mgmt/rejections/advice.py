"""Reasons of rejections in words, and what to do about them. Pure."""

from typing import Final, NamedTuple


class RejectionReason(NamedTuple):
    """A reason in words, and what to do next. `setting`: page of the source that the advice names, "" for none."""

    words: str
    todo: str
    setting: str = ""


REASONS: Final = {
    "schema": RejectionReason(
        "does not fit the schema",
        "Correct the sender. If the events are right and the schema is not, accept them with a new version.",
        "event_types",
    ),
    "schema-unknown": RejectionReason(
        "schema is not of the source",
        "The sender's schema is not a version of the source's subjects. Register it under one of them.",
        "event_types",
    ),
    "event-type-missing": RejectionReason(
        "has no type",
        "Have the sender name the type of the event where the source expects it.",
        "event_types",
    ),
    "event-type-unknown": RejectionReason(
        "type is unknown",
        "Correct the type, or add it to the event types of the source.",
        "event_types",
    ),
    "avro-invalid": RejectionReason(
        "is not framed Avro",
        "Use a serializer that writes the schema's id or fingerprint, or send an object container file.",
        "event_types",
    ),
    "unavailable": RejectionReason(
        "its schema was not loaded yet", "Run the dead letter again: the schema is loaded within seconds."
    ),
    "json-invalid": RejectionReason("is not valid JSON", "Correct the sender; the samples show what it sends."),
    "json-duplicate-key": RejectionReason(
        "has a duplicate key", "Have the sender write each key of an object once; readers would drop all but one."
    ),
    "json-too-deep": RejectionReason("is nested too deeply", "Have the sender flatten its objects."),
    "cloudevent-invalid": RejectionReason(
        "is not a CloudEvent", "Have the sender set the attributes specversion, id, source and type."
    ),
    "body-too-large": RejectionReason("request is too large", "Have the sender send smaller batches."),
    "event-too-large": RejectionReason("is too large", "Send a reference to large content instead of the content."),
    "too-many-events": RejectionReason("request has too many events", "Have the sender send smaller batches."),
    "media-type": RejectionReason(
        "media type is not supported",
        "Send JSON, or bind event types to the source before you send Avro.",
        "event_types",
    ),
    "signature-missing": RejectionReason(
        "is not signed",
        "Check that the sender at this URL is the one that the source is set up for, and that it signs its requests.",
        "webhook",
    ),
    "signature-invalid": RejectionReason(
        "signature is invalid",
        "Enter the same secret here and at the sender. A proxy in between must not change the body.",
        "webhook",
    ),
    "signature-stale": RejectionReason(
        "was signed too long ago",
        "Check the sender's clock. If requests are sent again on purpose, have the sender sign them again.",
        "webhook",
    ),
    "form-invalid": RejectionReason("is not a valid form", "Have the sender encode the form as name=value pairs."),
    "xml-invalid": RejectionReason(
        "is not XML that can be converted", "Have the sender send well-formed XML without a document type declaration."
    ),
    "id-invalid": RejectionReason(
        "id of the delivery is invalid", "Have the sender use at most 255 printable characters as its id."
    ),
    "encoding-invalid": RejectionReason("content encoding is invalid", "Compress with gzip, or do not compress."),
    "http-invalid": RejectionReason(
        "request is not valid HTTP", "Have the sender send what the detail of the response asks for."
    ),
    "body-slow": RejectionReason("body was sent too slowly", "Check the sender's connection, or send smaller batches."),
}
_OTHER: Final = RejectionReason("was rejected", "The sender's response names the reason.")


def reason_of(code: str) -> RejectionReason:
    """Return the reason of a code; a general one for a code of a later release."""
    return REASONS.get(code, _OTHER)
