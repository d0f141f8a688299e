"""Challenges: text in the body of a request that its sender expects in the response."""

from typing import Final

import msgspec

from dataplane.webhooks.request import Reply

MAX_CHALLENGE: Final = 1_024


class Challenge(msgspec.Struct):
    """Body of a request with a challenge. Both are empty in other bodies."""

    type: str = ""
    challenge: str = ""


_decode = msgspec.json.Decoder(Challenge).decode


def read_challenge(body: bytes) -> Challenge:
    """Return the challenge of a JSON body; an empty one if it has none that can be returned."""
    try:
        found = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Challenge()
    return found if len(found.challenge) <= MAX_CHALLENGE else Challenge()


def reply_to(asked: Challenge) -> Reply:
    """Return the response with the text of the challenge."""
    return Reply(200, "text/plain; charset=utf-8", asked.challenge.encode("utf-8", "replace"))
