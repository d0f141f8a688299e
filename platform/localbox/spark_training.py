"""Training run for the class archive: the first operations of a cell's application and its queries, by spark-submit."""


def main() -> None:
    """Run a task in Python, a plan with an aggregation, and a batch of a stateful stream."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.parallelize(range(4), 2).map(str).collect()
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "4").load()
    counts = rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
    counts.trigger(availableNow=True).start().awaitTermination(60)
    spark.stop()


if __name__ == "__main__":
    main()
