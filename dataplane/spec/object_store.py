"""The `s3` destination of a spec: a bucket of an S3-compatible object store. Each batch of messages is one object."""

import re
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from dataplane.spec.destination import (
    BatchLimits,
    MaxBytes,
    MaxEvents,
    ResponseRule,
    RetryPolicy,
    Url,
    check_url,
)
from dataplane.spec.errors import SpecError
from dataplane.spec.template import RequestTemplate

_PREFIX: Final = re.compile(r"([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)*([A-Za-z0-9_=-][A-Za-z0-9._=-]*)?")
_REGION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# libcurl and stores sign other characters differently, and no name of a bucket has them.
_BUCKET: Final = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?")
_ACCESS_KEY_ID: Final = re.compile(r"[A-Za-z0-9._/+=-]{1,128}")


class ObjectSettings(BatchLimits, frozen=True):
    """Messages of one object, written when a limit is reached or the oldest has waited `max_wait_ms`."""

    max_events: MaxEvents = 1_000
    max_bytes: MaxBytes = 1024 * 1024
    max_wait_ms: Annotated[int, Meta(ge=0, le=10_000)] = 2_000


class AwsAuth(Struct, tag="aws", tag_field="type", frozen=True):
    """Signature with an access key (AWS Signature Version 4); the secret access key is the credential."""

    access_key_id: str
    region: str


class S3Destination(Struct, tag="s3", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """Bucket of an S3-compatible store; each batch of messages becomes one object.

    url:           the bucket: `https://s3.eu-central-1.amazonaws.com/my-bucket`
    region:        region in the signature; stores other than AWS document theirs, often `auto` or `us-east-1`
    access_key_id: the access key. Its secret is stored as the destination's credential
    prefix:        beginning of the objects' keys; ends with `/` to be a folder
    format:        one body in each line, or a Parquet file with the columns of a lake table
    batch:         limits of one object
    """

    # Constant delivery settings, with the fields of HttpDestination.
    rules: ClassVar[list[ResponseRule]] = []
    ordered: ClassVar[bool] = False
    after_dead: ClassVar[str] = "go-on"
    headers: ClassVar[dict[str, str]] = {}
    template: ClassVar[RequestTemplate | None] = None

    url: Url
    region: str
    access_key_id: str
    prefix: Annotated[str, Meta(max_length=400)] = ""
    format: Literal["jsonl", "parquet"] = "jsonl"
    batch: ObjectSettings = ObjectSettings()
    timeout_s: Annotated[float, Meta(gt=0, le=30)] = 8.0
    concurrency: Annotated[int, Meta(ge=1, le=1_000)] = 8
    rate_per_s: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    retry: RetryPolicy = RetryPolicy()

    @property
    def auth(self) -> AwsAuth:
        """Return the authentication of its requests."""
        return AwsAuth(self.access_key_id, self.region)


def check_object_store(path: str, to: S3Destination) -> None:
    """Check what types cannot express. Raises SpecError, with the field under `path`."""
    check_url(f"{path}.url", to.url)
    parts = urlsplit(to.url)
    if "?" in to.url or not _BUCKET.fullmatch(parts.path):
        raise SpecError(
            f"{path}.url", "needs the URL of a bucket, such as https://s3.eu-central-1.amazonaws.com/my-bucket"
        )
    if not _REGION.fullmatch(to.region):
        raise SpecError(f"{path}.region", "needs a region such as eu-central-1")
    if not _ACCESS_KEY_ID.fullmatch(to.access_key_id):
        raise SpecError(f"{path}.access_key_id", "needs the ID of an access key, such as AKIAIOSFODNN7EXAMPLE")
    if not _PREFIX.fullmatch(to.prefix):
        raise SpecError(f"{path}.prefix", "needs names of letters, digits and ._=- between slashes, such as orders/")
