"""The widget of notebooks: the state sent to it, and the code that draws it; both are part of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everview.errors import MissingRuntime

try:
    import anywidget
    import traitlets
except ModuleNotFoundError:
    raise MissingRuntime("live widgets need anywidget", hint="pip install 'everview[notebook]'") from None

_HERE = Path(__file__).parent


class LiveWidget(anywidget.AnyWidget):
    """A page of rows, or a picture of a circuit with notes. `show` sends what has changed, as one message."""

    _esm = (_HERE / "live.js").read_text(encoding="utf-8")
    _css = (_HERE / "live.css").read_text(encoding="utf-8")

    caption: Any = traitlets.Unicode().tag(sync=True)
    problem: Any = traitlets.Unicode().tag(sync=True)
    columns: Any = traitlets.List().tag(sync=True)  # {"name": …, "number": whether it stands to the right}
    rows: Any = traitlets.List().tag(sync=True)  # lists of texts, None for NULL
    picture: Any = traitlets.Unicode().tag(sync=True)  # SVG
    notes: Any = traitlets.Dict().tag(sync=True)  # by box of the picture: a text, and whether the node was at work
    version: Any = traitlets.Int().tag(sync=True)  # the last to change: the page is drawn then

    def __repr__(self) -> str:
        return f"<live {self.problem or self.caption}>"

    def show(self, state: dict[str, Any]) -> None:
        """Send a state, as far as it differs from the one that is shown."""
        if all(getattr(self, name) == value for name, value in state.items()):
            return
        with self.hold_sync():
            for name, value in state.items():
                self.set_trait(name, value)
            self.set_trait("version", self.version + 1)
