"""Header Idempotency-Key of the API: a request that is sent twice changes state once, and gets the same response.

The response is stored in the transaction of the change. A refused or crashed request stores nothing, so that its key
can be used again. Source: draft-ietf-httpapi-idempotency-key-header-08.
"""

import functools
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.idempotency.services import KeyedRequest, StoredResponse, claim_key, store_response
from mgmt.models import User
from mgmt.web.problems import ProblemError

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
_BARE: Final = re.compile(r"[!-~]{1,255}")
_QUOTED: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\]){1,255})"')

Handler = Callable[..., Response]


def once_per_key(handler: Handler) -> Handler:
    """Wrap the `post` of a view: a repeated request with the same Idempotency-Key gets the stored response."""

    @functools.wraps(handler)
    def keyed(view: Any, request: Request, **path: Any) -> Response:
        if HEADER not in request.headers or not isinstance(request.user, User):
            return handler(view, request, **path)
        asked, now = _keyed_request(request, request.user), timezone.now()
        with transaction.atomic():
            if stored := claim_key(asked, now):
                return _replayed(stored)
            response = handler(view, request, **path)
            if response.status_code < 400:
                store_response(asked, _stored(response), now)
            return response

    return keyed


def key_of(header: str) -> str:
    """Return the key of a header value: a string of RFC 9651 in quotes, or bare, as most clients send it.

    Raises ProblemError idempotency-key-invalid.
    """
    if quoted := _QUOTED.fullmatch(header):
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if header.startswith('"') or not _BARE.fullmatch(header):
        raise ProblemError("idempotency-key-invalid")
    return header


def _keyed_request(request: Request, user: User) -> KeyedRequest:
    try:
        body: bytes = request.body
    except RequestDataTooBig as exc:
        raise ProblemError("body-too-large") from exc
    digest = hashlib.sha256()
    for part in (str(request.method).encode(), request.get_full_path().encode(), body):
        digest.update(hashlib.sha256(part).digest())
    return KeyedRequest(user, key_of(request.headers[HEADER]), digest.hexdigest())


def _stored(response: Response) -> StoredResponse:
    body = "" if response.data is None else JSONRenderer().render(response.data).decode()
    headers = {name: value for name, value in response.items() if name != "Content-Type"}
    return StoredResponse(response.status_code, headers, body)


def _replayed(stored: StoredResponse) -> Response:
    data = json.loads(stored.body) if stored.body else None
    return Response(data, status=stored.status, headers={**stored.headers, REPLAYED: "true"})
