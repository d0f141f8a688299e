"""Redrives and releases: how far each has come, and stopping one. Shared by the dead letters' and the held page."""

from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from mgmt import access, services
from mgmt.console.lines import MoveLine, move_line
from mgmt.console.pages import for_members, viewer_of
from mgmt.models import Move, Pipe
from mgmt.queries.delivery import moves_of
from mgmt.services.moves import RATE_PER_S

MOST_SHOWN: Final = 5


class RateForm(forms.Form):
    """How fast a redrive goes."""

    rate_per_s = forms.FloatField(
        label="Messages a second",
        help_text="At most, so that the destination is not overrun. The limits of its delivery settings hold too.",
        initial=RATE_PER_S,
        widget=forms.NumberInput({"class": "form-control", "inputmode": "decimal", "step": "any"}),
    )


@for_members
@require_POST
def abort_move(request: HttpRequest, pipe_id: str, move_id: str) -> HttpResponse:
    """Stops one; what it has not reached stays where it was."""
    move = access.get_move(viewer_of(request), pipe_id, move_id, access.MOVE_MESSAGES)
    if services.abort_move(move=move):
        words = f"The {move.what} to {move.destination or 'the steps'} stops; what is left stays where it was."
        messages.success(request, words, "fine")
    return redirect("console:dead" if move.what == Move.What.REDRIVE else "console:held", pipe_id)


def latest_moves(pipe: Pipe, what: str) -> list[MoveLine]:
    """The newest few, the newest first."""
    return [move_line(row) for row in moves_of(pipe=pipe).filter(what=what)[:MOST_SHOWN]]
