"""The delivery settings of one destination: what was typed, the part of the spec it means, and where an error belongs.

Secrets never stand in a spec: they are entered on the destination's own page.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django import forms
from django.http import QueryDict

from dataplane.spec.template import OPEN
from mgmt.console.spans import SpanField, typed_span

THENS: Final = {
    "delivered": "delivered",
    "retry": "try again",
    "dead": "dead: never again",
    "throttle": "try again, and slow down",
}
AUTHS: Final = {
    "none": "signature only",
    "header": "a secret header",
    "basic": "user name and password",
    "bearer": "a bearer token",
    "oauth2": "OAuth2 client credentials",
    "mtls": "a client certificate (mTLS)",
}
FORMATS: Final = {
    "": "one message a request",
    "json-array": "batches, as a JSON array",
    "ndjson": "batches, a line each (NDJSON)",
    "cloudevents": "CloudEvents batches",
}
TIMEOUT_RULES: Final = (("408", "", "retry"), ("425", "", "retry"))
_RULE_PATH: Final = re.compile(r"\.rules\[(\d+)\]\.?(.*)")
_TOO_SHORT: Final = "Expected `str` of length >= 1"  # as msgspec says it
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
    """The plain fields. What a spec may hold is judged by the spec's own parser, not here."""

    url = forms.CharField(label="URL", max_length=2_000, widget=forms.URLInput(_TEXT))
    timeout_s = forms.FloatField(label="Timeout in seconds", help_text="For the whole of one try.", widget=_number())
    local_tries = forms.IntegerField(
        label="Tries at once", help_text="With short pauses, before a message waits longer.", widget=_number()
    )
    span = SpanField(
        label="Gives up after",
        help_text="Such as 24 h or 3 d, at most 7 d. What is not delivered by then is a dead letter.",
        widget=forms.TextInput(_TEXT),
    )
    concurrency = forms.IntegerField(label="Requests at a time", help_text="At most.", widget=_number())
    rate_per_s = forms.FloatField(
        label="Messages a second", help_text="At most. Empty: as many as come.", required=False, widget=_number()
    )
    ordered = forms.BooleanField(
        label="Keep the order of each key",
        help_text="A key's later messages wait behind its failed one; other keys go on.",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )
    after_dead = forms.ChoiceField(
        label="After a dead letter, its key",
        choices=[("go-on", "goes on"), ("hold", "is held")],
        widget=forms.Select(_SELECT),
    )
    batch = forms.ChoiceField(
        label="Form of a request", choices=list(FORMATS.items()), required=False, widget=forms.Select(_SELECT)
    )
    max_events = forms.IntegerField(label="Messages in a batch", help_text="At most.", required=False, widget=_number())
    max_bytes = forms.IntegerField(label="Bytes in a batch", help_text="At most.", required=False, widget=_number())
    max_wait_ms = forms.IntegerField(
        label="Milliseconds that a message waits for others", required=False, help_text="At most.", widget=_number()
    )
    auth = forms.ChoiceField(label="Credentials", choices=list(AUTHS.items()), widget=forms.Select(_SELECT))
    header_name = _optional("Name of the header", "Such as X-Api-Key.")
    username = _optional("User name")
    token_url = _optional("Token URL", "Where we fetch a token, and fetch it anew before it ends.")
    client_id = _optional("Client id")
    scope = _optional("Scope", "If the token endpoint asks for one.")
    template_path = _optional(
        "Path and query",
        "In place of the URL's own, such as /customers/${body.customer}/orders. Values are encoded.",
    )
    template_body = forms.CharField(
        label="Body",
        help_text='An expression whose value is sent as JSON, such as {"text": body.title}. Empty: the message itself.',
        required=False,
        widget=forms.Textarea(_TEXT | {"rows": 4}),
    )


@dataclass(frozen=True)
class RuleRow:
    """A rule about answers, as typed."""

    status: str = ""
    body: str = ""
    then: str = "retry"
    error: str = ""

    @property
    def empty(self) -> bool:
        """A row nobody filled in; it is left out."""
        return not self.status.strip() and not self.body.strip()


@dataclass(frozen=True)
class HeaderRow:
    """A header of the destination's own, as typed: constant, or with expressions in its value."""

    name: str = ""
    value: str = ""
    error: str = ""

    @property
    def is_template(self) -> bool:
        """Whether it differs from message to message."""
        return OPEN in self.value

    @property
    def empty(self) -> bool:
        """A row nobody filled in; it is left out."""
        return not self.name.strip() and not self.value.strip()


@dataclass(frozen=True)
class Settings:
    """A destination's delivery settings as they stand on the form."""

    form: DeliveryForm
    rules: tuple[RuleRow, ...] = ()
    headers: tuple[HeaderRow, ...] = ()

    def destination(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """The destination's part of a spec, on top of what it was; the form must be valid."""
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

    def unbound(self) -> "Settings":
        """The same without errors: nobody asked to save yet."""
        return replace(self, form=DeliveryForm(initial=dict(self.form.data.items())))

    def with_error(self, path: str, reason: str) -> "Settings":
        """With a spec error in the row or under the field it belongs to."""
        if reason.startswith(_TOO_SHORT):
            reason = "must not be empty"
        if match := _RULE_PATH.search(path):
            rules = [row for row in self.rules if not row.empty]
            rules[int(match[1])] = replace(rules[int(match[1])], error=f"{match[2] or 'rule'}: {reason}")
            return replace(self, rules=tuple(rules))
        if ".headers" in path:
            return replace(self, headers=tuple(replace(row, error=reason) for row in self.headers if not row.empty))
        self.form.add_error(_field_of(path, self.form.data.get("auth", "")), reason)
        return self


def settings_from_spec(destination: Mapping[str, Any]) -> Settings:
    """A destination's part of a stored spec, as a form."""
    auth, batch, retry = destination["auth"], destination["batch"] or {}, destination["retry"]
    template = destination.get("template") or {}
    initial = {name: destination[name] for name in ("url", "timeout_s", "concurrency", "ordered", "after_dead")}
    initial |= {"rate_per_s": destination["rate_per_s"], "local_tries": retry["local_tries"]}
    initial |= {"span": typed_span(retry["span_s"]), "batch": batch.get("format", ""), "auth": auth["type"]}
    initial |= {name: batch.get(name) for name in ("max_events", "max_bytes", "max_wait_ms")}
    initial |= {f"template_{name}": template.get(name) or "" for name in ("path", "body")}
    initial |= {shown: auth[name] for name, shown in _AUTH_FIELDS.get(auth["type"], {}).items()}
    return Settings(
        DeliveryForm(initial=initial),
        tuple(RuleRow(r["when"]["status"], r["when"].get("body") or "", r["then"]) for r in destination["rules"]),
        tuple(HeaderRow(*row) for row in {**destination["headers"], **template.get("headers", {})}.items()),
    )


def settings_from_post(post: QueryDict) -> Settings:
    """What was sent."""
    rules = zip(post.getlist("rule_status"), post.getlist("rule_body"), post.getlist("rule_then"), strict=False)
    headers = zip(post.getlist("header_key"), post.getlist("header_value"), strict=False)
    return Settings(
        form=DeliveryForm(post),
        rules=tuple(RuleRow(*row) for row in rules),
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


def _rule(row: RuleRow) -> dict[str, Any]:
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
