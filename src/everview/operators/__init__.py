"""Operators: what each means, its law, and its step over one shard's changes. One idea a file."""
