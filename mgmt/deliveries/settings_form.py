"""Delivery settings form of one destination: conversion from and to its part of the spec, and placement of errors.

A spec never contains secrets: they are entered on the destination's own page.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django import forms
from django.http import QueryDict

from dataplane.spec.template import OPEN
from mgmt.web.durations import DurationField, typed_duration

THENS: Final = {
    "delivered": "delivered",
    "retry": "retry",
    "dead": "fail permanently",
    "throttle": "retry and slow down",
}
AUTHS: Final = {
    "none": "signature only",
    "header": "secret header",
    "basic": "user name and password",
    "bearer": "bearer token",
    "oauth2": "OAuth2 client credentials",
    "mtls": "client certificate (mTLS)",
}
FORMATS: Final = {
    "": "one message per request",
    "json-array": "batches as a JSON array",
    "ndjson": "batches as NDJSON",
    "cloudevents": "CloudEvents batches",
}
TIMEOUT_RULES: Final = (("408", "", "retry"), ("425", "", "retry"))
ORDER_NEEDS_STREAMING: Final = (
    "This pipe has bulk execution, which does not keep the order of a key. Choose Streaming in its editor first."
)
_RULE_PATH: Final = re.compile(r"\.rules\[(\d+)\]\.?(.*)")
_TOO_SHORT: Final = "Expected `str` of length >= 1"  # wording of msgspec
_TEXT: Final = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
_SELECT: Final = {"class": "form-select"}
_AUTH_FIELDS: Final = {
    "header": {"name": "header_name"},
    "basic": {"username": "username"},
    "oauth2": {"token_url": "token_url", "client_id": "client_id", "scope": "scope"},
}


def _number(**limits: Any) -> forms.NumberInput:
    return forms.NumberInput(_TEXT | {"inputmode": "decimal"} | limits)


def _optional(label: str, hint: str = "", **more: Any) -> forms.CharField:
    return forms.CharField(label=label, help_text=hint, required=False, widget=forms.TextInput(_TEXT), **more)


class DeliveryForm(forms.Form):
    """Fields of the delivery settings. The parser of the spec validates their values, not this form."""

    url = forms.CharField(label="URL", max_length=2_000, widget=forms.URLInput(_TEXT))
    timeout_s = forms.FloatField(label="Timeout in seconds", help_text="For one whole attempt.", widget=_number())
    local_tries = forms.IntegerField(
        label="Immediate attempts", help_text="With short pauses, before longer delays.", widget=_number()
    )
    span = DurationField(
        label="Retry period",
        help_text="Such as 24 h or 3 d, at most 7 d. Messages not delivered by then become dead letters.",
        widget=forms.TextInput(_TEXT),
    )
    concurrency = forms.IntegerField(label="Concurrent requests", help_text="Maximum.", widget=_number())
    rate_per_s = forms.FloatField(
        label="Messages per second", help_text="Maximum. Leave empty for no limit.", required=False, widget=_number()
    )
    ordered = forms.BooleanField(
        label="Keep order by key",
        help_text="Later messages of a key wait until its failed message is delivered or dead; other keys do not wait.",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )
    after_dead = forms.ChoiceField(
        label="After a dead letter, later messages of the key",
        choices=[("go-on", "are delivered"), ("hold", "are held")],
        widget=forms.Select(_SELECT),
    )
    batch = forms.ChoiceField(
        label="Batching", choices=list(FORMATS.items()), required=False, widget=forms.Select(_SELECT)
    )
    max_events = forms.IntegerField(label="Messages per batch", help_text="Maximum.", required=False, widget=_number())
    max_bytes = forms.IntegerField(label="Bytes per batch", help_text="Maximum.", required=False, widget=_number())
    max_wait_ms = forms.IntegerField(
        label="Batch wait in milliseconds", required=False, help_text="Maximum.", widget=_number()
    )
    auth = forms.ChoiceField(label="Credentials", choices=list(AUTHS.items()), widget=forms.Select(_SELECT))
    header_name = _optional("Header name", "Such as X-Api-Key.")
    username = _optional("User name")
    token_url = _optional("Token URL", "Penstock fetches a token here and refreshes it before it expires.")
    client_id = _optional("Client id")
    scope = _optional("Scope", "If the token endpoint requires one.")
    template_path = _optional(
        "Path and query",
        "Replaces the path of the URL, such as /customers/${body.customer}/orders. Values are encoded.",
    )
    template_body = forms.CharField(
        label="Body",
        help_text='Expression whose value is sent as JSON, such as {"text": body.title}. Empty: the message itself.',
        required=False,
        widget=forms.Textarea(_TEXT | {"rows": 4}),
    )


@dataclass(frozen=True)
class ResponseRuleRow:
    """Response rule as typed."""

    status: str = ""
    body: str = ""
    then: str = "retry"
    error: str = ""

    @property
    def empty(self) -> bool:
        """True for a row without input; it is left out."""
        return not self.status.strip() and not self.body.strip()


@dataclass(frozen=True)
class HeaderRow:
    """Custom header as typed: constant, or with expressions in its value."""

    name: str = ""
    value: str = ""
    error: str = ""

    @property
    def is_template(self) -> bool:
        """True if the value contains an expression."""
        return OPEN in self.value

    @property
    def empty(self) -> bool:
        """True for a row without input; it is left out."""
        return not self.name.strip() and not self.value.strip()


@dataclass(frozen=True)
class DeliverySettings:
    """Delivery settings of a destination as entered in the form."""

    form: DeliveryForm
    rules: tuple[ResponseRuleRow, ...] = ()
    headers: tuple[HeaderRow, ...] = ()

    def destination(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """Return the destination's part of a spec, based on its previous one; the form must be valid."""
        typed = self.form.cleaned_data
        return copy.deepcopy(dict(base)) | {
            "url": typed["url"],
            "timeout_s": typed["timeout_s"],
            "concurrency": typed["concurrency"],
            "retry": dict(base.get("retry", {})) | {"local_tries": typed["local_tries"], "span_s": typed["span"]},
            "rate_per_s": typed["rate_per_s"],
            "ordered": typed["ordered"],
            "after_dead": typed["after_dead"],
            "batch": _batch(typed),
            "auth": _auth(typed),
            "rules": [_rule(row) for row in self.rules if not row.empty],
            "headers": self._headers(is_template=False),
            "template": self._template(),
        }

    def _headers(self, *, is_template: bool) -> dict[str, str]:
        rows = (row for row in self.headers if not row.empty and row.is_template is is_template)
        return {row.name.strip(): row.value.strip() for row in rows}

    def _template(self) -> dict[str, Any] | None:
        typed = self.form.cleaned_data
        parts = {name: typed[f"template_{name}"].strip() for name in ("path", "body")}
        template = {name: text for name, text in parts.items() if text}
        headers = self._headers(is_template=True)
        return template | ({"headers": headers} if headers else {}) or None

    def unbound(self) -> "DeliverySettings":
        """Return a copy without errors, for actions that do not save."""
        return replace(self, form=DeliveryForm(initial=dict(self.form.data.items())))

    def with_error(self, path: str, reason: str) -> "DeliverySettings":
        """Return a copy with a spec error at the row or field that it belongs to."""
        if reason.startswith(_TOO_SHORT):
            reason = "must not be empty"
        if match := _RULE_PATH.search(path):
            rules = [row for row in self.rules if not row.empty]
            rules[int(match[1])] = replace(rules[int(match[1])], error=f"{match[2] or 'rule'}: {reason}")
            return replace(self, rules=tuple(rules))
        if path == "$.execution":
            self.form.add_error("ordered", ORDER_NEEDS_STREAMING)
            return self
        if ".headers" in path:
            return replace(self, headers=tuple(replace(row, error=reason) for row in self.headers if not row.empty))
        self.form.add_error(_field_of(path, self.form.data.get("auth", "")), reason)
        return self


def settings_from_spec(destination: Mapping[str, Any]) -> DeliverySettings:
    """Return the form for a destination's part of a stored spec."""
    auth, batch, retry = destination["auth"], destination["batch"] or {}, destination["retry"]
    template = destination.get("template") or {}
    initial = {name: destination[name] for name in ("url", "timeout_s", "concurrency", "ordered", "after_dead")}
    initial |= {"rate_per_s": destination["rate_per_s"], "local_tries": retry["local_tries"]}
    initial |= {"span": typed_duration(retry["span_s"]), "batch": batch.get("format", ""), "auth": auth["type"]}
    initial |= {name: batch.get(name) for name in ("max_events", "max_bytes", "max_wait_ms")}
    initial |= {f"template_{name}": template.get(name) or "" for name in ("path", "body")}
    initial |= {shown: auth[name] for name, shown in _AUTH_FIELDS.get(auth["type"], {}).items()}
    return DeliverySettings(
        DeliveryForm(initial=initial),
        tuple(
            ResponseRuleRow(r["when"]["status"], r["when"].get("body") or "", r["then"]) for r in destination["rules"]
        ),
        tuple(HeaderRow(*row) for row in {**destination["headers"], **template.get("headers", {})}.items()),
    )


def settings_from_post(post: QueryDict) -> DeliverySettings:
    """Return the posted settings."""
    rules = zip(post.getlist("rule_status"), post.getlist("rule_body"), post.getlist("rule_then"), strict=False)
    headers = zip(post.getlist("header_key"), post.getlist("header_value"), strict=False)
    return DeliverySettings(
        form=DeliveryForm(post),
        rules=tuple(ResponseRuleRow(*row) for row in rules),
        headers=tuple(HeaderRow(*row) for row in headers),
    )


def _batch(typed: Mapping[str, Any]) -> dict[str, Any] | None:
    if not typed["batch"]:
        return None
    limits = {name: typed[name] for name in ("max_events", "max_bytes", "max_wait_ms") if typed[name] is not None}
    return {"format": typed["batch"], **limits}


def _auth(typed: Mapping[str, Any]) -> dict[str, Any]:
    kind = typed["auth"]
    return {"type": kind} | {name: typed[shown] for name, shown in _AUTH_FIELDS.get(kind, {}).items()}


def _rule(row: ResponseRuleRow) -> dict[str, Any]:
    body = {"body": row.body} if row.body else {}
    return {"when": {"status": row.status.strip(), **body}, "then": row.then}


def _field_of(path: str, auth: str) -> str | None:
    place = path.partition(".destinations.")[2].partition(".")[2]
    if place.startswith("auth."):
        return _AUTH_FIELDS.get(auth, {}).get(place.removeprefix("auth."), "auth")
    known = {"retry.span_s": "span", "retry.local_tries": "local_tries", "batch.format": "batch"}
    known |= {"template.path": "template_path", "template.body": "template_body", "template": "batch"}
    name = known.get(place, place.removeprefix("batch."))
    return name if name in DeliveryForm.base_fields else None
