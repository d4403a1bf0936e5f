"""The shell: SQL on a database from a terminal or a script, with commands that begin with a backslash.

`Session` runs one input and prints what it gives; `lines` reads inputs from a terminal, `inputs` cuts text into them.
"""

from everview.shell.session import Session

__all__ = ["Session"]
