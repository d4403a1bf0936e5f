"""``python -m everview`` is ``everview``."""

from everview.cli import app

if __name__ == "__main__":
    app(prog_name="everview")
