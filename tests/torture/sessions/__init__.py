"""Sessions at random: tables, views of every front end, changes and reopened directories, in several ways of running.

A step is lines of Python, so that a fault is a program to read. `values`, `views` and `steps` draw it for what the
database has by then, `ways` are the databases that run it, and `trial` compares them and makes a failing session short.
"""

from __future__ import annotations

from torture.sessions.trial import run

__all__ = ["run"]
