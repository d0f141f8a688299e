"""The closed list of causes: what each means, whose move it is, and what to do. One help page for each."""

from dataclasses import dataclass
from typing import Final

DESTINATION: Final = "the destination's owner"
SOURCE: Final = "whoever sends the events"
PIPE: Final = "whoever edits the pipe"
OPERATOR: Final = "the operator of Penstock"
AGAIN, HELD, FINAL, REFUSED = "again", "held", "final", "refused"
ENDINGS: Final = {
    AGAIN: "tried again",
    HELD: "held until somebody releases it",
    FINAL: "final: a dead letter",
    REFUSED: "refused by ingest: the sender has to send it again",
}
_KEPT: Final = "Then resume the destination: we send one message, and release the rest if it is accepted."
_RESEND: Final = "When it is mended, redrive what is dead: the same messages go out again with the same ids."
_MAKE_ANEW: Final = (
    "It died before it was ready to be sent, so there is nothing to redrive: when it is mended, send the event once "
    "more, with the same id."
)
_WAITS: Final = "Nothing is lost meanwhile: messages are tried again until the retry span of the destination is over."


@dataclass(frozen=True)
class Cause:
    """A cause as pages tell it. `words` is half a sentence; `ending` is one of ENDINGS."""

    code: str
    words: str
    meaning: str
    whose: str
    ending: str
    todo: tuple[str, ...]


def _again(code: str, words: str, meaning: str, *todo: str, whose: str = DESTINATION) -> Cause:
    return Cause(code, words, meaning, whose, AGAIN, (*todo, _WAITS))


def _final(code: str, words: str, meaning: str, *todo: str, whose: str = DESTINATION) -> Cause:
    return Cause(code, words, meaning, whose, FINAL, (*todo, _RESEND))


def _unready(code: str, words: str, meaning: str, *todo: str, whose: str = PIPE) -> Cause:
    return Cause(code, words, meaning, whose, FINAL, (*todo, _MAKE_ANEW))


def _held(code: str, words: str, meaning: str, *todo: str, whose: str = DESTINATION) -> Cause:
    return Cause(code, words, meaning, whose, HELD, (*todo, _KEPT))


ALL: Final = (
    _final(
        "rejected",
        "answered 4xx, which is final",
        "The destination understood the request and refused it. Any 4xx but 429 is final: sending the same again would "
        "be refused again. Many in a row suspend the destination, so that later messages are held and not refused too.",
        "Read the answer: 401 and 403 speak of credentials, 404 of the URL, 400 and 422 of the body.",
        "For credentials, enter the new ones in the destination's delivery settings; for the URL, publish a revision.",
        "If this status means something else at this destination, add a rule: 408, for one, may be worth a retry.",
    ),
    _held(
        "gone",
        "answered 410: gone",
        "The destination said that it will not come back. It is suspended and its messages are held.",
        "Ask its owner for the new URL and publish a revision with it.",
    ),
    _held(
        "held-too-long",
        "held for half the time that held messages are kept",
        "The destination or its pipe has been paused or suspended for long. Held messages are kept for 14 days; what "
        "is older is gone.",
        "Resume the destination, even if only to let its messages become dead letters: these are kept anew.",
    ),
    _held(
        "storm",
        "refused one message after another",
        "So many final refusals came in a row that the destination is suspended: the stream is held, not emptied into "
        "dead letters.",
        "Read the answers of the last attempts: they are refused for one reason, most often a credential or the URL.",
        "Mend that. What was refused before the suspension are dead letters, to be redriven when it is mended.",
    ),
    _final(
        "by-rule",
        "a rule of this destination decided",
        "One of the rules in the delivery settings fits the answer and says what becomes of the message.",
        "Look at the answer and at the rules; change the rule if it fits more than was meant.",
        whose=PIPE,
    ),
    _final(
        "expired",
        "tried for the whole retry span, without success",
        "Every try failed, or the message's turn did not come, until the retry span of the destination was over.",
        "The last attempts say how it failed. Mend that first; lengthen the span if outages last longer.",
    ),
    _again(
        "timeout",
        "no answer in time",
        "The request went out, or the connection was being made, and no whole answer came within the timeout.",
        "See in the attempts where the time went: dns, connect, tls, first byte.",
        "If the destination works long on each message, let it answer first and work afterwards, or raise the timeout.",
    ),
    _again(
        "dns",
        "the host name is not known",
        "The name in the URL could not be resolved to an address.",
        "Check the spelling of the host in the URL, and that its DNS record exists in public.",
    ),
    _again(
        "connect",
        "no connection",
        "The address was found, but nobody listens there, or a firewall refuses us.",
        "Check that the service runs, that the port is right, and that our addresses may pass the firewall.",
    ),
    _again(
        "tls",
        "TLS failed",
        "The connection was made, but both sides agreed on no protocol version or cipher.",
        "Offer TLS 1.2 or newer. There is no way to switch the check off.",
    ),
    _again(
        "tls-certificate",
        "its certificate is not valid",
        "The certificate has expired, is for another host, or is signed by nobody we know.",
        "Renew the certificate and send the whole chain with it. There is no way to switch the check off.",
    ),
    _again(
        "throttled",
        "answered 429: too many requests",
        "The destination is well and asks for less. We slow down and obey its Retry-After.",
        "Set a rate in the delivery settings that it can take, or have its limit raised.",
    ),
    _again(
        "server-error",
        "answered 5xx",
        "The destination failed while it worked on the request.",
        "Its own logs say why; the webhook-id of the attempt finds the request.",
    ),
    _again(
        "redirect",
        "answered with a redirect, which is never followed",
        "A redirect could lead a signed request to anybody, so it is a failure.",
        "Publish a revision with the URL that it redirects to.",
        whose=PIPE,
    ),
    _again(
        "informational",
        "answered 1xx only",
        "An answer that announces another one came, and the other one never did.",
        "Look at the proxy in front of the destination.",
    ),
    _again(
        "no-answer",
        "it hung up without an answer",
        "The connection was closed after the request, before any status. It may have taken the message all the same.",
        "Let the destination recognise repeats by their webhook-id.",
    ),
    _again(
        "reset",
        "the connection was reset",
        "The connection was torn down while the request or the answer was on its way.",
        "Look at the proxy or load balancer in front of the destination.",
    ),
    _again(
        "answer-cut",
        "the answer broke off",
        "The answer ended before the length that it had announced.",
        "Look at the proxy in front of the destination.",
    ),
    _again(
        "protocol",
        "the answer is not HTTP",
        "What came back could not be read as HTTP.",
        "Check that the port of the URL is that of the web service.",
    ),
    _again(
        "transport",
        "the connection failed",
        "The transfer failed in a way that has no name of its own here; the attempt has the details.",
        "Read the attempt's details; if they say nothing to you, show them to the operator.",
    ),
    _again(
        "url-invalid",
        "the URL cannot be used",
        "The URL is not one that a request can be made of.",
        "Publish a revision with a whole http or https URL.",
        whose=PIPE,
    ),
    _again(
        "destination-forbidden",
        "its address may not be called from here",
        "The host resolves to a private, local or reserved address. Such are never connected to.",
        "Use an address that is public. If the host has several, each of them must be.",
        whose=PIPE,
    ),
    _again(
        "credential",
        "no token could be had to sign in with",
        "The token endpoint gave no token.",
        "Enter the secret in the destination's delivery settings, and check token URL, client id and scope there.",
        whose=PIPE,
    ),
    _again(
        "credential-missing",
        "no credential is stored for its address",
        "This destination signs in with a credential, and none is stored for the address that it has now: a credential "
        "is sent to the address it was entered for, and to no other.",
        "Enter the credential on the destination's page. What waits is sent as soon as it is there.",
        whose=PIPE,
    ),
    _again(
        "secret-unreadable",
        "its secrets cannot be opened",
        "The secrets of this destination were written with a key that this installation no longer has.",
        "Put that key back beside the new one, or store new secrets.",
        whose=OPERATOR,
    ),
    _again(
        "unknown-destination",
        "the destination is not known",
        "The part that sends has not heard of this destination yet, or never will.",
        "If it stays so for more than a minute, tell the operator.",
        whose=OPERATOR,
    ),
    _final(
        "header-invalid",
        "a header of it cannot be sent",
        "A header made from the message held characters that a header cannot carry.",
        "Let the source send plain text there, or publish a revision that leaves the header out.",
        whose=SOURCE,
    ),
    _final(
        "request-invalid",
        "its request could not be made",
        "Something in this message could not be made into a request. The other messages go on.",
        "Tell the operator: the log of the part that sends says what it was.",
        whose=OPERATOR,
    ),
    _unready(
        "decode",
        "the body is not JSON",
        "Steps work on JSON, and the body of this event could not be read as such.",
        "Let the source send JSON, or take the steps out of the pipe.",
        whose=SOURCE,
    ),
    _unready(
        "step",
        "a step could not change it",
        "A step of the pipe did not fit this event: a field was absent or of another type than the step needs.",
        "Publish a revision whose steps fit these events too.",
        whose=PIPE,
    ),
    _final(
        "loop-detected",
        "it went round in a loop",
        "The destination is an ingest of Penstock, ours or one that had got this event from Penstock more than 8 times "
        "already. Each delivery counts in the header penstock-hops; an event that goes round would never end.",
        "Look where the destination passes events on to, and take Penstock out of that path.",
        "To process events in two pipes, send them to both.",
        whose=PIPE,
    ),
    _unready(
        "transform-limit",
        "its steps took too long",
        "The steps of the pipe took more than 2 s of CPU time on this one event; others would have had to wait.",
        "Send smaller events, for example fewer items in the list that an explode step splits.",
        "Publish a revision with fewer or cheaper steps.",
        whose=PIPE,
    ),
    _unready(
        "lookup",
        "a key could not be made for a look-up",
        "The expression for the key of a look-up had no value for this event, or one that cannot be a key.",
        "Publish a revision whose `enrich` steps fit these events too.",
        whose=PIPE,
    ),
    _unready(
        "no-row",
        "its row is not in the look-up table",
        "The revision says that events without a row in the look-up table are dead, and there was none for this one.",
        "Add the row to the table, or let such events go on with `on_missing`.",
        whose=PIPE,
    ),
    _unready(
        "no-table",
        "the look-up table was removed",
        "The revision looks up a table that is not there any more.",
        "Publish a revision without it, or make the table again.",
        whose=PIPE,
    ),
    _final(
        "row",
        "it cannot be a row of the look-up table",
        "A destination of type table takes objects of at most 16 kB, with a key that is text or a whole number.",
        "Publish a revision whose `key` and steps fit these events.",
        whose=PIPE,
    ),
    _again(
        "topic-unwritable",
        "its topic cannot be written",
        "The destination is a topic, a look-up table or a lake, and Kafka did not take the record in time.",
        "Look whether Kafka is well, and whether the destination's topic was deleted.",
        whose=OPERATOR,
    ),
    _again(
        "lake-unwritable",
        "its lake cannot be written",
        "The store of the lake did not take the rows.",
        "Look at the reason: whether the store is there, and whether Spark may write to it.",
        whose=OPERATOR,
    ),
    _unready(
        "encode",
        "the changed body cannot be written as JSON",
        "After the steps, the body held a value that JSON cannot carry.",
        "Publish a revision whose steps make no such value.",
        whose=PIPE,
    ),
    _final(
        "template",
        "its request could not be made",
        "The destination's template had no value for this message: a field was missing, of another kind, or would have "
        "led to another address. Many in a row suspend the destination, so that later messages are held.",
        "Read the dead letter's detail: it names the part of the template, and what was needed.",
        "Mend the template in the destination's delivery settings, or give the expression something for such messages.",
        whose=PIPE,
    ),
    Cause(
        "quota-exceeded",
        "events over your quota were refused",
        "More came than your quota allows, so ingest answered 429 with Retry-After. What it had accepted before is "
        "delivered. A batch is accepted as far as the quota reaches, with a verdict for each event.",
        SOURCE,
        REFUSED,
        (
            "Compare what you send with your quotas, on the page Usage.",
            "Let the sender wait as long as Retry-After says, and send what was refused again.",
            "Ask the operator of Penstock for a higher quota if you need more for long.",
        ),
    ),
    Cause(
        "admission",
        "too many of the first messages failed",
        "The pipe is let in by shares of its keys, and what was let in did badly. Less is let in now; the rest is "
        "accepted and held, as it came.",
        PIPE,
        HELD,
        (
            "Read the newest dead letters and attempts: they say what failed and why.",
            "Mend the destination, or publish a revision that is right: it takes over at once.",
            "Then let the pipe go on, on its page: what is held follows in order.",
        ),
    ),
    Cause(
        "dead-rate",
        "too many messages die in the pipe's steps",
        "At least half of the messages of a minute failed in a step, so the pipe is held instead of being emptied into "
        "dead letters: it accepts events and keeps them, as they came.",
        PIPE,
        HELD,
        (
            "Read the newest dead letters: they name the step, the path and what was wrong with the value.",
            "Mend the steps and publish the revision, or mend what is sent.",
            "Then resume the pipe: what is held runs through the steps of the live revision.",
        ),
    ),
    Cause(
        "dependency-missing",
        "something that its steps need is not there yet",
        "A revision, a look-up table or the secret of hash steps has not reached the processes that run the pipe. It "
        "accepts events and keeps them, as they came.",
        OPERATOR,
        HELD,
        (
            "Usually nothing: the pipe goes on automatically when it has come, and what is held follows in order.",
            "If it lasts longer than a few minutes, tell the operator: the pipe's page names what is missing.",
        ),
    ),
    _unready(
        "too-large",
        "it grew too large",
        "After the steps, the message was larger than a message may be.",
        "Let steps add less, or remove what the destination does not need.",
        whose=PIPE,
    ),
    _unready(
        "internal-error",
        "Penstock failed on it",
        "A stage of the pipe failed on this event in a way that Penstock does not know. Other events are not affected.",
        "Tell the operator: this is a defect of Penstock. The event is kept, and the log of the lane has the details.",
        whose=OPERATOR,
    ),
    _final(
        "crashes-lane",
        "it ended the process that worked on it",
        "This message ended its lane again and again, so it was taken aside, alone.",
        "Tell the operator: this is our fault. The message is kept.",
        whose=OPERATOR,
    ),
)  # fmt: skip
BY_CODE: Final = {cause.code: cause for cause in ALL}
