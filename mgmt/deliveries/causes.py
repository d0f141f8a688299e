"""Closed list of failure causes with meaning, responsible party and next steps; each has a help page."""

from dataclasses import dataclass
from typing import Final

from dataplane.causes import Cause

DESTINATION: Final = "the destination's owner"
SOURCE: Final = "the sender of the events"
PIPE: Final = "an editor of the pipe"
OPERATOR: Final = "the operator of Penstock"
AGAIN, HELD, FINAL, REFUSED, LOST, QUEUED, UNAFFECTED = (
    "again", "held", "final", "refused", "lost", "queued", "unaffected",
)  # fmt: skip
ENDINGS: Final = {
    AGAIN: "retried automatically",
    HELD: "held until released",
    FINAL: "final: a dead letter",
    LOST: "lost: no outcome was recorded",
    QUEUED: "queued: processed in turn",
    UNAFFECTED: "not affected: delivered as usual",
    REFUSED: "rejected by ingest: the sender must send it again",
}
_KEPT: Final = "Then resume the destination: Penstock sends one message, and releases the rest if it is accepted."
_RESEND: Final = "Once fixed, redrive the dead letters: the same messages are sent again with the same ids."
_RUN_AGAIN: Final = (
    "Once the cause is fixed, run the dead letters again through the live revision: the same events keep their ids. "
    "Events that failed in the steps of one destination, or after an explode step, must be sent again instead."
)
_WAITS: Final = "Nothing is lost: messages are retried until the retry period of the destination ends."


@dataclass(frozen=True)
class CauseText:
    """Help text of a cause. `words` is a phrase without a full stop; `ending` is a key of ENDINGS."""

    code: Cause
    words: str
    meaning: str
    whose: str
    ending: str
    todo: tuple[str, ...]


def _again(code: Cause, words: str, meaning: str, *todo: str, whose: str = DESTINATION) -> CauseText:
    return CauseText(code, words, meaning, whose, AGAIN, (*todo, _WAITS))


def _final(code: Cause, words: str, meaning: str, *todo: str, whose: str = DESTINATION) -> CauseText:
    return CauseText(code, words, meaning, whose, FINAL, (*todo, _RESEND))


def _final_in_steps(code: Cause, words: str, meaning: str, *todo: str, whose: str = PIPE) -> CauseText:
    return CauseText(code, words, meaning, whose, FINAL, (*todo, _RUN_AGAIN))


def _held(code: Cause, words: str, meaning: str, *todo: str, whose: str = DESTINATION) -> CauseText:
    return CauseText(code, words, meaning, whose, HELD, (*todo, _KEPT))


ALL: Final = (
    _final(
        Cause.REJECTED,
        "returned 4xx, which is final",
        "The destination understood the request and refused it. Any 4xx but 429 is final: the same "
        "request would be refused again. Many in a row suspend the destination, so that later messages are held "
        "and not refused too.",
        "Read the response: 401 and 403 point to credentials, 404 to the URL, 400 and 422 to the body.",
        "For credentials, enter the new ones on the destination's page; for the URL, publish a revision.",
        "Then send one message from the alert: if it is accepted, Penstock resumes the destination and sends the rest.",
        "If this destination uses the status differently, add a response rule: 408, for example, may be worth a retry.",
    ),
    _held(
        Cause.GONE,
        "returned 410: gone",
        "The destination returned 410: it was removed permanently. It is suspended and its messages are held.",
        "Ask its owner for the new URL and publish a revision with it.",
    ),
    _held(
        Cause.HELD_TOO_LONG,
        "held for half of the retention period",
        "The destination or its pipe has been paused or suspended for a long time. Held messages are kept for 14 days; "
        "older ones are deleted.",
        "Resume the destination, even if its messages become dead letters: dead letters have a new retention period.",
    ),
    _held(
        Cause.STORM,
        "rejected many messages in a row",
        "The destination refused so many messages in a row that it is suspended: messages are held instead of becoming "
        "dead letters.",
        "Read the responses of the last attempts: usually they have one cause, most often a credential or the URL.",
        "Fix it. Messages refused before the suspension are dead letters; redrive them after the fix.",
    ),
    CauseText(
        Cause.LOST,
        "messages were lost",
        "Messages that ingest accepted have no outcome in a sealed minute, and the loss is above the threshold of the "
        "pipe. Each lost message is known by its position and the node that saw it last.",
        OPERATOR,
        LOST,
        (
            "Contact the operator: this is a defect of Penstock.",
            "Have the sender send these events again: the alert names the first ones, its links lead to all of them.",
            "Acknowledge the alert once they are handled. It is resolved automatically if every message is found.",
        ),
    ),
    _again(
        Cause.FAILING,
        "attempts are failing",
        "At least half of the attempts of the last minutes failed, or Penstock stopped sending because no request "
        "got a response. Messages wait and are retried. The alert is resolved after five minutes of success.",
        "Read the newest attempts: they show the response, or the phase in which the connection failed.",
        "Check the logs of the destination; search for the webhook-id of an attempt.",
    ),
    _again(
        Cause.DELAYED,
        "messages wait for longer than ten minutes",
        "The oldest undelivered message has waited for longer than the limit, although most attempts succeed: "
        "the destination is slower than the traffic, or some messages fail again and again.",
        "If the destination is slow, raise its concurrency or rate limit in the delivery settings, or make it faster.",
        "If some messages fail again and again, read their attempts: usually they have a field or value in common.",
    ),
    CauseText(
        Cause.HOT_PARTITION,
        "one partition receives too many events",
        "Events with the same key are stored on the same partition, and one partition gets much more than its share of "
        "the pipe's events. It lags, or soon will: a partition is read by one process, so more capacity does not help. "
        "The alert is resolved after five minutes without this imbalance.",
        PIPE,
        QUEUED,
        (
            "If the order of the key's events does not matter, distribute them over all partitions: "
            "the button Spread the keys publishes a revision that does so, and a revert undoes it.",
            "If it matters, use a finer key, such as the order instead of the customer.",
            "If neither is possible, ask the operator of Penstock to move the pipe to a cell of its own, where "
            "it delays no other pipe.",
        ),
    ),
    CauseText(
        Cause.NUMERIC_DRIFT,
        "numeric fields have unusual values",
        "The values of a numeric field of the events are distributed differently than at this hour on earlier days, in "
        "two samples in a row of at least 15 minutes and 200 values each. The measure is the population stability "
        "index, which is above 0.25 and far above its usual level for this field. Fields are not compared "
        "during a ramp, a new revision or a change of the cell. The alert is resolved once the values are usual again, "
        "or have stayed as they are for a day.",
        SOURCE,
        UNAFFECTED,
        (
            "Compare the two distributions: a shift of all values suggests a changed unit, scale or model; one range "
            "that grows suggests a default value or a stuck sensor; a wider spread suggests mixed senders.",
            "Ask the sender of the events what changed at the time at which the alert was opened.",
            "If the change is intended, acknowledge the alert: it is resolved after a day with the new values.",
            "If the field changes often, choose Ignore this field. Other fields are still compared.",
        ),
    ),
    _final(
        Cause.BY_RULE,
        "failed by a response rule",
        "A response rule in the delivery settings matches the response and makes the failure final.",
        "Compare the response with the rules, and change the rule if it matches more than intended.",
        whose=PIPE,
    ),
    _final(
        Cause.EXPIRED,
        "not delivered within the retry period",
        "Every attempt failed, or the message could not be attempted, until the retry period of the destination ended.",
        "The last attempts show why it failed. Fix that first; extend the retry period if outages last longer.",
    ),
    _again(
        Cause.TIMEOUT,
        "timed out",
        "No complete response arrived within the timeout, which includes the time to connect.",
        "Check in the attempts which phase took the time: dns, connect, tls, first byte.",
        "If the destination needs long for each message, respond first and process later, or raise the timeout.",
    ),
    _again(
        Cause.DNS,
        "the host name cannot be resolved",
        "The name in the URL could not be resolved to an address.",
        "Check the spelling of the host in the URL, and that it has a public DNS record.",
    ),
    _again(
        Cause.CONNECT,
        "no connection",
        "The host name was resolved, but the connection was refused or blocked by a firewall.",
        "Check that the service runs, that the port is right, and that the firewall allows our addresses.",
    ),
    _again(
        Cause.TLS,
        "the TLS handshake failed",
        "The connection was made, but no common protocol version or cipher was found.",
        "Offer TLS 1.2 or newer. This check cannot be turned off.",
    ),
    _again(
        Cause.TLS_CERTIFICATE,
        "the certificate is not valid",
        "The certificate has expired, is for another host, or is not signed by a trusted CA.",
        "Renew the certificate and serve the whole chain. This check cannot be turned off.",
    ),
    _again(
        Cause.STORE_REFUSED,
        "the object store returned 4xx",
        "The store refused to write an object. The reason is never one message, so all are retried.",
        "Read the response: 403 points to the access key, its secret, its right to write, or the region; 404 to the "
        "bucket; 301 and 400 often to the region.",
        "Enter a new secret on the destination's page; for the others, publish a revision.",
    ),
    _again(
        Cause.DATABASE_REFUSED,
        "the database refused the connection or the statement",
        "The database does not accept the user, the password or the statement: a table or column is missing, or the "
        "user may not insert. The reason is never one row, so all are retried.",
        "Read the reason of the attempt. Create what is missing, or grant the right, in the database.",
        "Enter a new password on the destination's page; for other settings, publish a revision.",
    ),
    _again(
        Cause.DATABASE_ERROR,
        "the database returned a temporary error",
        "The database is starting, stopping or overloaded, is a read-only standby, or ended the transaction because of "
        "others (a deadlock, a lock).",
        "Check the state of the database, its free connections and its locks.",
    ),
    _final(
        Cause.ROW_REFUSED,
        "the database refused the row",
        "A value does not fit the type of its column or breaks a constraint, or a row-level security policy refuses "
        "the row. The other rows of the batch are inserted.",
        "The SQLSTATE and the names of column and constraint show which value it is.",
        "Publish a revision whose columns and steps produce rows that fit, or change the table.",
    ),
    _again(
        Cause.THROTTLED,
        "returned 429: too many requests",
        "The destination limits the request rate. Penstock slows down and obeys its Retry-After.",
        "Set a rate limit in the delivery settings that the destination can handle, or have its limit raised.",
    ),
    _again(
        Cause.SERVER_ERROR,
        "returned 5xx",
        "The destination failed while it processed the request.",
        "Check the logs of the destination; search for the webhook-id of the attempt.",
    ),
    _again(
        Cause.REDIRECT,
        "returned a redirect, which is never followed",
        "A redirect could send a signed request to another party, so it counts as a failure.",
        "Publish a revision with the target URL of the redirect.",
        whose=PIPE,
    ),
    _again(
        Cause.INFORMATIONAL,
        "returned 1xx only",
        "Only an interim response arrived, and no final response followed.",
        "Check the proxy in front of the destination.",
    ),
    _again(
        Cause.NO_ANSWER,
        "connection closed without a response",
        "The connection was closed after the request and before a status. The destination may have processed the "
        "message.",
        "Make the destination recognise duplicates by their webhook-id.",
    ),
    _again(
        Cause.RESET,
        "the connection was reset",
        "The connection was reset during the request or the response.",
        "Check the proxy or load balancer in front of the destination.",
    ),
    _again(
        Cause.ANSWER_CUT,
        "the response was truncated",
        "The response ended before its announced length.",
        "Check the proxy in front of the destination.",
    ),
    _again(
        Cause.PROTOCOL,
        "the response is not HTTP",
        "The response could not be parsed as HTTP.",
        "Check that the port of the URL is that of the web service.",
    ),
    _again(
        Cause.TRANSPORT,
        "the connection failed",
        "The transfer failed for a reason without a code of its own; the attempt has the details.",
        "Read the details of the attempt, and send them to the operator if they are not clear.",
    ),
    _again(
        Cause.URL_INVALID,
        "the URL cannot be used",
        "No request can be built from this URL.",
        "Publish a revision with a complete http or https URL.",
        whose=PIPE,
    ),
    _again(
        Cause.DESTINATION_FORBIDDEN,
        "the address is not allowed",
        "The host resolves to a private, local or reserved address. Penstock never connects to these.",
        "Use a public address. If the host has several addresses, all of them must be public.",
        whose=PIPE,
    ),
    _again(
        Cause.CREDENTIAL,
        "could not get an OAuth token",
        "The token endpoint returned no token.",
        "Check the token URL, client id and scope in the delivery settings, and the secret on the destination's page.",
        whose=PIPE,
    ),
    _again(
        Cause.CREDENTIAL_MISSING,
        "no credential is stored for its address",
        "This destination needs a credential, and none is stored for its current URL, access key, or host and user: a "
        "credential is only used for those that it was entered for.",
        "Enter the credential on the destination's page. Waiting messages are then sent.",
        whose=PIPE,
    ),
    _again(
        Cause.SECRET_UNREADABLE,
        "its secrets cannot be decrypted",
        "The secrets of this destination were encrypted with a key that this installation no longer has.",
        "Restore that key in addition to the new one, or store new secrets.",
        whose=OPERATOR,
    ),
    _again(
        Cause.UNKNOWN_DESTINATION,
        "the destination is not known yet",
        "The configuration of this destination has not reached the sending process.",
        "If this lasts longer than a minute, contact the operator.",
        whose=OPERATOR,
    ),
    _final(
        Cause.HEADER_INVALID,
        "invalid header value",
        "A header built from the message contained characters that are not allowed in a header.",
        "Send plain text in this field, or publish a revision without the header.",
        whose=SOURCE,
    ),
    _final(
        Cause.REQUEST_INVALID,
        "the request could not be built",
        "No request could be built from this message. Other messages are not affected.",
        "Contact the operator: the log of the sending process has the details.",
        whose=OPERATOR,
    ),
    _final_in_steps(
        Cause.DECODE,
        "the body is not JSON",
        "Steps need JSON, and the body of this event could not be parsed.",
        "Send JSON, or remove the steps from the pipe.",
        whose=SOURCE,
    ),
    _final_in_steps(
        Cause.SCHEMA,
        "the event does not fit its schema",
        "A record of a Kafka source does not fit the schema of its event type, or an event does not fit the schema in "
        "which its destination gets it. The details name the field and the reason.",
        "Correct the sender, or register a version that accepts the event. A destination then needs a revision that "
        "names this version, or steps that make the event fit.",
        whose=SOURCE,
    ),
    _final_in_steps(
        Cause.STEP,
        "a step failed",
        "A step of the pipe could not be applied to this event: a field was missing or had the wrong type.",
        "Publish a revision whose steps handle such events.",
        whose=PIPE,
    ),
    _final_in_steps(
        Cause.ROUTE,
        "a routing rule failed",
        "The condition of a routing rule could not be evaluated on this event: a field was missing or had the wrong "
        "type. The details name the rule.",
        "Publish a revision whose rule handles such events.",
    ),
    _final(
        Cause.LOOP_DETECTED,
        "delivery loop detected",
        "The destination is an ingest endpoint of Penstock, and this event has been delivered by Penstock more than 8 "
        "times already. The header penstock-hops counts deliveries; without a limit the loop would never end.",
        "Check where the destination forwards events, and remove Penstock from that path.",
        "To process events in two pipes, send them to both pipes.",
        whose=PIPE,
    ),
    _final_in_steps(
        Cause.TRANSFORM_LIMIT,
        "the steps took too long",
        "The steps of the pipe used more than 2 s of CPU time for this event, which would delay other events.",
        "Send smaller events, for example fewer items in the list that an explode step splits.",
        "Publish a revision with fewer or cheaper steps.",
        whose=PIPE,
    ),
    _final_in_steps(
        Cause.LOOKUP,
        "the look-up key is invalid",
        "The key expression of a look-up had no value for this event, or a value that cannot be a key.",
        "Publish a revision whose `enrich` steps handle such events.",
        whose=PIPE,
    ),
    _final_in_steps(
        Cause.NO_ROW,
        "no row in the look-up table",
        "The look-up table has no row for this event, and the revision treats a missing row as a failure.",
        "Add the row to the table, or change `on_missing` to let such events pass.",
        whose=PIPE,
    ),
    _final_in_steps(
        Cause.NO_TABLE,
        "the look-up table was deleted",
        "The revision uses a look-up table that no longer exists.",
        "Publish a revision without the table, or create the table again.",
        whose=PIPE,
    ),
    _final(
        Cause.ROW,
        "not a valid row, or a record without a key",
        "A look-up table accepts objects of at most 16 kB whose key is text or a whole number. A compacted topic "
        "accepts events with a key. For a row of a database, the expression of each column needs a value.",
        "Publish a revision whose keys and steps produce valid rows and records.",
        whose=PIPE,
    ),
    _again(
        Cause.TOPIC_UNWRITABLE,
        "the topic cannot be written",
        "The destination is a topic, a look-up table or a lake, and Kafka did not accept the record in time.",
        "Check that Kafka is healthy and that the destination's topic was not deleted.",
        whose=OPERATOR,
    ),
    _again(
        Cause.LAKE_UNWRITABLE,
        "the lake cannot be written",
        "The storage of the lake did not accept the rows.",
        "Check the reason: whether the storage is reachable, and whether Spark may write to it.",
        whose=OPERATOR,
    ),
    _final_in_steps(
        Cause.ENCODE,
        "the result is not valid JSON",
        "After the steps, the body contained a value that JSON cannot represent.",
        "Publish a revision whose steps do not produce such a value.",
        whose=PIPE,
    ),
    _final(
        Cause.TEMPLATE,
        "the request template failed",
        "The request template had no value for this message: a field was missing, had the wrong type, or would have "
        "changed the address. Many in a row suspend the destination, so that later messages are held.",
        "Read the details of the dead letter: they name the part of the template and the required value.",
        "Fix the template in the delivery settings, or add a default value for such messages.",
        whose=PIPE,
    ),
    CauseText(
        Cause.QUOTA_EXCEEDED,
        "events over your quota were rejected",
        "You sent more than your quota allows, so ingest returned 429 with Retry-After. Events accepted earlier are "
        "delivered. A batch is accepted up to the quota, with a result for each event.",
        SOURCE,
        REFUSED,
        (
            "Compare your traffic with your quotas on the Usage page.",
            "Make the sender wait for the time in Retry-After and send the rejected events again.",
            "Ask the operator of Penstock for a higher quota if you need it permanently.",
        ),
    ),
    CauseText(
        Cause.REJECTING,
        "events have been rejected for several minutes",
        "Events of one sender keep failing the checks of ingest, such as the schema of their type: at least 20 within "
        "ten minutes, in at least three of these minutes. They are not processed. Those of a Kafka source are dead "
        "letters. The alert is resolved ten minutes after the last one.",
        SOURCE,
        REFUSED,
        (
            "Open the rejected events from the alert: the reason, the field and samples are shown.",
            "Correct the sender that the alert names. It got the same reason in the response to each event.",
            "If the events are right, choose Accept with a new version: the proposed schema is checked for "
            "compatibility before it is registered.",
            "Have the sender send the rejected events again; run the dead letters of a Kafka source again.",
        ),
    ),
    CauseText(
        Cause.SEQUENCE_GAP,
        "numbers of a sequence are missing",
        "A source has a sequence, and numbers of a key have not arrived within five minutes of a higher one. "
        "Usually the sender skipped them, or ingest refused the events. The alert is resolved when they arrive, or "
        "after an hour without a new gap.",
        SOURCE,
        UNAFFECTED,
        (
            "Read the key and the missing numbers in the alert, and look for them in the sender's log.",
            "Open the rejected events, and the dead letters with the cause crashes-lane: both leave gaps.",
            "Have the sender send the missing events again with the same numbers: the gap closes.",
        ),
    ),
    CauseText(
        Cause.ADMISSION,
        "too many of the first messages failed",
        "The pipe is admitted gradually by key, and too many of the admitted messages failed. The share was reduced; "
        "other events are accepted and held unchanged.",
        PIPE,
        HELD,
        (
            "Read the newest dead letters and attempts: they show what failed and why.",
            "Fix the destination, or publish a corrected revision: it goes live immediately.",
            "Then resume the admission on the pipe's page: held events follow in order.",
        ),
    ),
    CauseText(
        Cause.DEAD_RATE,
        "too many messages fail in the pipe's steps",
        "At least half of the messages of one minute failed in a step, so Penstock paused the pipe: it accepts events "
        "and holds them unchanged instead of turning them into dead letters.",
        PIPE,
        HELD,
        (
            "Read the newest dead letters: they name the step, the path and the problem with the value.",
            "Fix the steps and publish a revision: it applies to all keys at once. Or fix the events at the sender.",
            "Once it is live, resume the pipe: one held event is processed first, and the rest follows if it passes.",
            "Then run the dead letters again through the new revision.",
        ),
    ),
    CauseText(
        Cause.DEPENDENCY_MISSING,
        "a dependency of its steps is missing",
        "A revision, a look-up table or the secret of hash steps has not reached the processes that run the pipe. The "
        "pipe accepts events and holds them unchanged.",
        OPERATOR,
        HELD,
        (
            "Usually nothing: the pipe resumes automatically once it is available; held events follow in order.",
            "If this lasts longer than a few minutes, contact the operator: the pipe's page names what is missing.",
        ),
    ),
    _final_in_steps(
        Cause.TOO_LARGE,
        "message too large after its steps",
        "After the steps, the message exceeded the size limit.",
        "Add less data in steps, or remove fields that the destination does not need.",
        whose=PIPE,
    ),
    _final_in_steps(
        Cause.INTERNAL_ERROR,
        "internal error of Penstock",
        "A stage of the pipe failed on this event with an unexpected error. Other events are not affected.",
        "Contact the operator: this is a defect of Penstock. The event is kept; the log of the lane has the details.",
        whose=OPERATOR,
    ),
    _final(
        Cause.CRASHES_LANE,
        "crashed the process that handled it",
        "This message repeatedly crashed its lane, so only this message was dead-lettered.",
        "Contact the operator: this is a defect of Penstock. The message is kept.",
        whose=OPERATOR,
    ),
)  # fmt: skip
BY_CODE: Final[dict[str, CauseText]] = {cause.code: cause for cause in ALL}
