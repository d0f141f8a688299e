"""Shadow runs: a draft runs over real events without sending them, and its output is compared with what was sent.

`dataplane.jobs.shadows` runs them as Spark jobs of the cell's driver; nothing here imports Spark.
"""
