"""Everview: incremental views for Python and Spark."""
