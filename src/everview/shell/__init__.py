"""The shell: SQL on a database from a terminal or a script, with commands that begin with a backslash.

`ShellSession` runs one input and prints its result; `lines` reads inputs from a terminal, `inputs` cuts text into them.
"""

from everview.shell.session import ShellSession

__all__ = ["ShellSession"]
