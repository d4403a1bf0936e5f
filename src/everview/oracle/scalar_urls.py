"""The meaning of `parse_url`: the parts of a URL, read letter by letter as RFC 2396 has them."""

from __future__ import annotations

import string

from everview.oracle.scalar_casts import NoValue

_PLAIN = string.ascii_letters + string.digits + "_-!.~'()*,;:$&+=?/[]@"


def parse_url(url: str, part: str, key: str | None = None) -> str | None:
    """The part of a URL; NULL if it has none, raises `NoValue` if the text is no URL."""
    head, mark, ref = url.partition("#")
    scheme, rest = _scheme(head)
    _check(rest)
    _check(ref)
    if scheme is not None and rest == "":
        raise NoValue("no URL")
    opaque = scheme is not None and not rest.startswith("/")
    before, question, query = ("", "", "") if opaque else rest.partition("?")
    authority, path = _authority(before)
    if authority == "" and path == "" and not opaque:
        raise NoValue("no URL")
    if scheme is None and authority is None and ":" in path.split("/")[0]:
        raise NoValue("no URL")
    if key is not None:
        return _parameter(query if question else None, key) if part == "QUERY" else None
    parts: dict[str, str | None] = {"PROTOCOL": scheme, "REF": ref if mark else None}
    if not opaque:
        parts |= {"AUTHORITY": authority, "PATH": path, "QUERY": query if question else None}
        parts |= {"FILE": path + question + query, "HOST": None, "USERINFO": None}
        parts |= _server(authority or "")
    return parts.get(part)


def _scheme(head: str) -> tuple[str | None, str]:
    name, mark, rest = head.partition(":")
    good = mark and name and name[0] in string.ascii_letters
    if good and all(letter in string.ascii_letters + string.digits + "+.-" for letter in name):
        return name, rest
    return None, head


def _authority(rest: str) -> tuple[str | None, str]:
    if not rest.startswith("//"):
        return None, rest
    end = rest.find("/", 2)
    return (rest[2:], "") if end < 0 else (rest[2:end], rest[end:])


def _check(text: str) -> None:
    place = 0
    while place < len(text):
        letter = text[place]
        if letter == "%":
            digits = text[place + 1 : place + 3]
            if len(digits) < 2 or any(digit not in string.hexdigits for digit in digits):
                raise NoValue("no URL")
            place += 2
        elif letter not in _PLAIN and (ord(letter) <= 160 or letter.isspace()):
            raise NoValue("no URL")
        place += 1


def _server(authority: str) -> dict[str, str | None]:
    """The user and the host, if the host is a name or a number."""
    user, sign, server = authority.rpartition("@") if authority.count("@") == 1 else ("", "", authority)
    if server.startswith("["):
        host, _, port = server.rpartition("]")
        host, port = host + "]", port.removeprefix(":")
    else:
        host, _, port = server.partition(":")
    if (port and not port.isdecimal()) or not _is_host(host):
        return {}
    return {"HOST": host, "USERINFO": user if sign else None}


def _is_host(host: str) -> bool:
    if host.startswith("["):
        return host.endswith("]") and len(host) > 2 and all(c in string.hexdigits + ":." for c in host[1:-1])
    labels = host.split(".")
    if len(labels) == 4 and all(label.isdecimal() and len(label) <= 3 and label.isascii() for label in labels):
        return True
    labels = labels[:-1] if len(labels) > 1 and labels[-1] == "" else labels
    return all(map(_is_label, labels)) and labels[-1][0] in string.ascii_letters


def _is_label(label: str) -> bool:
    letters = string.ascii_letters + string.digits
    return label != "" and label[0] in letters and label[-1] in letters and all(c in letters + "-" for c in label)


def _parameter(query: str | None, key: str) -> str | None:
    for pair in (query or "").split("&"):
        if pair.startswith(f"{key}="):
            return pair[len(key) + 1 :]
    return None
