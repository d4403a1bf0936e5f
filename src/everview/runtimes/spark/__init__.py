"""Circuits on Spark: stages run as tasks over shards, state stays in the store's files."""
