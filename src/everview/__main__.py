"""``python -m everview`` is ``everview``."""

from __future__ import annotations

import signal


def main() -> None:
    """Run a command; Ctrl-C while its modules are loaded ends it as it ends any program, without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from everview.cli import app

    app(prog_name="everview")


if __name__ == "__main__":
    main()
