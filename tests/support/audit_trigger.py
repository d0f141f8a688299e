"""Audit triggers in Postgres: they see each lease acquisition and each change of a cell in its transaction, and
refuse what the interlocks must never allow. They share no code with what they watch.

`says` sets the acting controller and the time; changes by people are not watched, because they need no lease.
"""

from datetime import datetime
from typing import Final

from django.db import connection

CHECKS: Final = """
CREATE TABLE audit_takes (
    cell text, token bigint, unwell boolean, paused boolean, PRIMARY KEY (cell, token)
);

CREATE FUNCTION audit_take() RETURNS trigger AS $$
DECLARE moment timestamptz;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.token <= OLD.token THEN RETURN NEW; END IF;
    moment := current_setting('audit.now')::timestamptz;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.holder <> '' AND OLD.until > moment THEN
            RAISE EXCEPTION 'audit: % takes % while % holds it', NEW.holder, NEW.cell_id, OLD.holder;
        END IF;
    END IF;
    INSERT INTO audit_takes SELECT NEW.cell_id, NEW.token,
        EXISTS (SELECT FROM mgmt_verdict WHERE cell_id = NEW.cell_id
                AND (state <> 'stable' OR at < moment - interval '60 s')),
        EXISTS (SELECT FROM mgmt_pause WHERE controller = NEW.holder AND ended_at IS NULL
                AND (cell_id IS NULL OR cell_id = NEW.cell_id) AND (until IS NULL OR until > moment));
    RETURN NEW;
END $$ LANGUAGE plpgsql;

CREATE FUNCTION audit_change(what text, cell text, undoes boolean, heeds_pauses boolean) RETURNS void AS $$
DECLARE
    who text := COALESCE(current_setting('audit.who', true), '');
    lease mgmt_lease%ROWTYPE;
    took audit_takes%ROWTYPE;
BEGIN
    IF who = '' THEN RETURN; END IF;
    SELECT * INTO lease FROM mgmt_lease WHERE cell_id = cell;
    IF lease.holder IS DISTINCT FROM who THEN
        RAISE EXCEPTION 'audit: % (%) of % while the lease is of %',
            what, who, cell, COALESCE(lease.holder, 'nobody');
    END IF;
    IF NOT EXISTS (SELECT FROM mgmt_cell WHERE id = cell AND fence = lease.token) THEN
        RAISE EXCEPTION 'audit: % (%) of % behind its fence', what, who, cell;
    END IF;
    SELECT * INTO STRICT took FROM audit_takes AS t WHERE t.cell = audit_change.cell AND t.token = lease.token;
    IF took.unwell AND NOT undoes THEN
        RAISE EXCEPTION 'audit: % (%) of % although it was not stable', what, who, cell;
    END IF;
    IF took.paused AND heeds_pauses THEN
        RAISE EXCEPTION 'audit: % (%) of % although that was paused', what, who, cell;
    END IF;
END $$ LANGUAGE plpgsql;

CREATE FUNCTION audit_cell() RETURNS trigger AS $$
DECLARE onward boolean; more boolean;
BEGIN
    IF NEW.release_id IS DISTINCT FROM OLD.release_id THEN
        onward := EXISTS (SELECT FROM mgmt_rollout WHERE state = 'running' AND release_id = NEW.release_id);
        PERFORM audit_change('a release', NEW.id, NOT onward, onward);
    END IF;
    IF NEW.lanes <> OLD.lanes THEN
        more := (SELECT sum(value::int) FROM jsonb_each_text(NEW.lanes))
              > (SELECT sum(value::int) FROM jsonb_each_text(OLD.lanes));
        PERFORM audit_change('lanes', NEW.id, more, TRUE);
    END IF;
    RETURN NEW;
END $$ LANGUAGE plpgsql;

CREATE FUNCTION audit_revision() RETURNS trigger AS $$
DECLARE onward boolean := NEW.state IN ('ramping', 'live');
BEGIN
    IF NOT (OLD.state = 'requested' AND NEW.state = 'failed') THEN  -- one that was never on the cell
        PERFORM audit_change('revision ' || NEW.state, pipe.cell_id, NOT onward, onward)
        FROM mgmt_pipe AS pipe WHERE pipe.id = NEW.pipe_id;
    END IF;
    RETURN NEW;
END $$ LANGUAGE plpgsql;

CREATE FUNCTION audit_share() RETURNS trigger AS $$
BEGIN
    PERFORM audit_change('a share', pipe.cell_id, FALSE, TRUE)
    FROM mgmt_pipe AS pipe JOIN mgmt_piperevision AS revision ON revision.pipe_id = pipe.id
    WHERE revision.id = NEW.revision_id;
    RETURN NEW;
END $$ LANGUAGE plpgsql;

CREATE FUNCTION audit_move() RETURNS trigger AS $$
DECLARE onward boolean := EXISTS (
    SELECT FROM mgmt_relocation WHERE pipe_id = NEW.id AND state = 'requested' AND target_id = NEW.cell_id);
BEGIN
    PERFORM audit_change('a pipe that comes', NEW.cell_id, NOT onward, onward);
    PERFORM audit_change('a pipe that leaves', OLD.cell_id, TRUE, onward);
    RETURN NEW;
END $$ LANGUAGE plpgsql;

CREATE TRIGGER audit AFTER INSERT OR UPDATE ON mgmt_lease FOR EACH ROW EXECUTE FUNCTION audit_take();
CREATE TRIGGER audit AFTER UPDATE ON mgmt_cell FOR EACH ROW EXECUTE FUNCTION audit_cell();
CREATE TRIGGER audit AFTER UPDATE ON mgmt_piperevision FOR EACH ROW
    WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION audit_revision();
CREATE TRIGGER audit AFTER UPDATE ON mgmt_ramp FOR EACH ROW
    WHEN (OLD.share < NEW.share) EXECUTE FUNCTION audit_share();
CREATE TRIGGER audit AFTER UPDATE ON mgmt_pipe FOR EACH ROW
    WHEN (OLD.cell_id <> NEW.cell_id) EXECUTE FUNCTION audit_move();
"""
GONE: Final = """
DROP TRIGGER audit ON mgmt_lease; DROP TRIGGER audit ON mgmt_cell; DROP TRIGGER audit ON mgmt_piperevision;
DROP TRIGGER audit ON mgmt_ramp; DROP TRIGGER audit ON mgmt_pipe;
DROP FUNCTION audit_take, audit_cell, audit_revision, audit_share, audit_move, audit_change;
DROP TABLE audit_takes;
"""


def call() -> None:
    """Install the triggers in this database."""
    _execute(CHECKS)


def dismiss() -> None:
    """Remove the triggers."""
    _execute(GONE)


def says(who: str, now: datetime) -> None:
    """Set the controller on whose behalf this connection acts from now on, and the time; "" for people."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('audit.who', %s, false), set_config('audit.now', %s, false)", [who, now.isoformat()]
        )


def forget() -> None:
    """Delete the recorded lease acquisitions of the previous world."""
    _execute("TRUNCATE audit_takes")


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
