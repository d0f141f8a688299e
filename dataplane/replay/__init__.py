"""Replays: copies of a pipe's earlier events pass a published revision once more (docs/decisions/0492-replays.md).

`dataplane.jobs.replays` runs them as Spark jobs of the cell's driver; nothing here imports Spark.
"""
