"""Where plans run: circuits in one process or on Spark, pipelines that pull. A runtime decides where, never what."""
