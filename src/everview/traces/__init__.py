"""Indexed state: spines of batches, views of them before and after a tick, cursors, and the durable store."""
