"""The files of the explorer's page: read once, from this package, and sent with a policy that lets nothing else in.

They hold no data, so they need no token; all that the page shows it asks for, with the token of its reader.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY: Final = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
))  # fmt: skip
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class PageFiles:
    """The files by their paths; nothing of a request is used to find one but as a key."""

    def __init__(self) -> None:
        folder = files("everview.serve.explorer").joinpath("static")
        self._files: dict[str, tuple[bytes, str, str]] = {}
        for file in folder.iterdir():
            kind = KINDS.get(file.name.rpartition(".")[2])
            if kind is not None:
                body = file.read_bytes()
                tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
                self._files["/" if file.name == "index.html" else f"/{file.name}"] = body, kind, tag

    @property
    def paths(self) -> frozenset[str]:
        """The paths that there are."""
        return frozenset(self._files)

    async def answer(self, request: Request) -> Response:
        """Send a file, or say that the reader's copy is still the same."""
        body, kind, tag = self._files[request.url.path]
        headers = {**HEADERS, "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=kind)
