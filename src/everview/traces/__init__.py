"""Indexed state: spines of batches, views of them before and after a tick, and the durable store."""
