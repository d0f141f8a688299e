"""Ingest replicas inside the test process."""

from dataplane.ingest.replica import IngestReplica


def close_replica(replica: IngestReplica) -> None:
    """Close the files and Kafka clients of a replica that was never started, so that it has nothing to report."""
    replica._journal.close()
    replica._reader.close()
    replica._peers.close()
