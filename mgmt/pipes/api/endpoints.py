"""Sources, API keys and destinations of a pipe."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.models import ApiKey, Source
from mgmt.pipes.serializers import (
    DestinationOut,
    KeyIn,
    KeyOut,
    KeyPageOut,
    NewKeyOut,
    NewSecretOut,
    RotationIn,
    SourceOut,
)
from mgmt.services import create_api_key, revoke_api_key, rotate_api_key, rotate_signing_secret
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import KeysetPage, page_of
from mgmt.web.problems import ProblemError
from mgmt.webhook_sources.queries import url_of


class SourcesView(View):
    """Sources of a pipe. A spec names at most 20, so there are no pages."""

    @operation("list_sources", responses=answers(200, SourceOut(many=True), "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """List a pipe's sources by name."""
        rows = access.get_pipe(self.user, pipe).sources.order_by("name")
        return Response(SourceOut(rows, many=True).data)


class KeysView(View):
    """API keys of all sources of a pipe."""

    @operation(
        "list_keys",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, KeyPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List the API keys of a pipe's sources, newest first, including revoked keys."""
        keys = ApiKey.objects.filter(source__pipe=access.get_pipe(self.user, pipe)).select_related("source")
        rows, paginator = page_of(keys, request, KeysetPage())
        return paginator.get_paginated_response(KeyOut(rows, many=True).data)

    @operation(
        "create_key",
        request=KeyIn,
        responses=answers(
            201,
            NewKeyOut,
            "invalid",
            "role-too-low",
            "not-found",
            "pipe-closed",
            "quota-exceeded",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Create an API key for a source, or a URL for its webhooks. The response has it; it cannot be read again."""
        row = access.get_pipe(self.user, pipe, access.MAKE_KEY)
        body = body_of(request, KeyIn)
        try:
            source = access.get_source(self.user, row.id, body["source"])
        except Source.DoesNotExist as exc:
            reason = "needs the name of a source of this pipe"
            error = {"pointer": "#/source", "detail": reason, "code": "does-not-exist"}
            raise ProblemError("invalid", errors=[error]) from exc
        key, plaintext = create_api_key(
            source=source, label=body["label"], days=body["expires_in_days"], by=self.user, use=body["use"]
        )
        return _new_key(key, plaintext)


class RotateKeyView(View):
    """Rotation of an API key."""

    @operation(
        "rotate_key",
        request=RotationIn,
        responses=answers(
            201,
            NewKeyOut,
            "invalid",
            "role-too-low",
            "not-found",
            "pipe-closed",
            "key-ended",
            "quota-exceeded",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str, key: str) -> Response:
        """Create a successor of an API key with its label; the old key works until the overlap has passed.

        The response contains the new key, which cannot be read again.
        """
        row = access.get_key(self.user, pipe, key, access.MAKE_KEY)
        body = body_of(request, RotationIn)
        overlap = timedelta(hours=body["overlap_hours"])
        new, plaintext = rotate_api_key(
            key=row, by=self.user, overlap=overlap, days=body["expires_in_days"], now=timezone.now()
        )
        return _new_key(new, plaintext)


class RevokeKeyView(View):
    """Revocation of an API key."""

    @operation("revoke_key", request=None, responses=answers(200, KeyOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, key: str) -> Response:
        """Revoke an API key permanently. Revoking a revoked key changes nothing."""
        row = access.get_key(self.user, pipe, key, access.REVOKE_KEY)
        revoke_api_key(key=row, by=self.user)
        return Response(KeyOut(row).data)


def _new_key(key: ApiKey, plaintext: str) -> Response:
    headers = {"Cache-Control": "no-store"}
    url = url_of(settings.PENSTOCK_INGEST_URL, plaintext) if key.use == "url" else ""
    return Response({**KeyOut(key).data, "key": plaintext, "url": url}, status=201, headers=headers)


class DestinationsView(View):
    """Destinations of a pipe. A spec names at most 50, so there are no pages."""

    @operation("list_destinations", responses=answers(200, DestinationOut(many=True), "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """List a pipe's destinations by name, including removed ones."""
        rows = access.get_pipe(self.user, pipe).destinations.order_by("name")
        return Response(DestinationOut(rows, many=True).data)


class DestinationView(View):
    """One destination."""

    @operation("get_destination", responses=answers(200, DestinationOut, "not-found"))
    def get(self, _request: Request, pipe: str, name: str) -> Response:
        """Return a destination as it is used now."""
        return Response(DestinationOut(access.get_destination(self.user, pipe, name)).data)


class RotateSecretView(View):
    """Rotation of a destination's signing secret."""

    @operation(
        "rotate_signing_secret",
        request=None,
        responses=answers(200, NewSecretOut, "role-too-low", "not-found"),
    )
    def post(self, _request: Request, pipe: str, name: str) -> Response:
        """Create a new signing secret, returned only here. The previous one also signs until the next rotation."""
        row = access.get_destination(self.user, pipe, name, access.ROTATE_SECRET)
        row, secret = rotate_signing_secret(destination=row, by=self.user)
        body = {"destination": DestinationOut(row).data, "secret": secret}
        return Response(body, headers={"Cache-Control": "no-store"})
