"""The logs of a state in an object store: a journal of what happened to them, one object an act.

```
log/<term>-<number>     begin, append, cut, drop, seal or proof
```

An object is made by `create`, so of two writers only one can have a place. A **term** is the time of one writer. The
next writer ends it with a seal, at the first place that is free; from then on the writer of that term finds the place
of its next act taken, whenever it comes, and knows that it is fenced off: the seal is its fence, the number of the term
the token. Seals are never removed. All else may be, once a later log has taken over: the acts of a term before its
seal were all acknowledged or given up, so one that arrives once more changes nothing.

Law: the journal in order of its places spells the log files of a state directory, byte for byte.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self
from zlib import crc32

from everview.traces.store.slices import damaged

UNDER = "log"
_NAME = re.compile(r"(\d{10})-(\d{10})")


class JournalPlace(NamedTuple):
    """The place of an act: the term, and the number of the act in it.

    >>> JournalPlace(2, 7).name, JournalPlace.named("0000000002-0000000007"), JournalPlace.named("notes")
    ('log/0000000002-0000000007', JournalPlace(term=2, number=7), None)
    """

    term: int
    number: int

    @property
    def name(self) -> str:
        return f"{UNDER}/{self.term:010}-{self.number:010}"

    @property
    def next(self) -> JournalPlace:
        return JournalPlace(self.term, self.number + 1)

    @property
    def next_term(self) -> JournalPlace:
        return JournalPlace(self.term + 1, 0)

    @classmethod
    def named(cls, name: str) -> Self | None:
        match = _NAME.fullmatch(name)
        return cls(int(match[1]), int(match[2])) if match else None


FIRST = JournalPlace(0, 0)


class ActKind(StrEnum):
    BEGIN = "begin"  # a log with these bytes
    APPEND = "append"  # these bytes to a log
    CUT = "cut"  # a log back to a length
    DROP = "drop"  # a log, as if never begun
    SEAL = "seal"  # the term
    PROOF = "proof"  # nothing, but that its writer was not fenced off


@dataclass(frozen=True, slots=True)
class JournalAct:
    """One act of a writer; ``nonce`` makes its bytes like no other's."""

    kind: ActKind
    writer: str
    log: int = 0
    at: int = 0  # the length of the log before what is appended, or after a cut
    data: bytes = b""
    nonce: str = ""

    def encode(self) -> bytes:
        r"""The object.

        >>> JournalAct(ActKind.APPEND, "here", 3, 40, b"record", "c0ffee").encode()
        b'{"act":"append","writer":"here","log":3,"at":40,"sum":2603917201,"nonce":"c0ffee"}\nrecord'
        """
        said = {"act": self.kind, "writer": self.writer, "log": self.log, "at": self.at, "sum": crc32(self.data)}
        head = json.dumps({**said, "nonce": self.nonce or secrets.token_hex(8)}, separators=(",", ":"))
        return head.encode() + b"\n" + self.data

    @classmethod
    def decode(cls, where: str, payload: bytes) -> Self:
        """The act that an object says; anything else is damage."""
        head, _, data = payload.partition(b"\n")
        try:
            said = json.loads(head)
            act = cls(ActKind(said["act"]), said["writer"], said["log"], said["at"], data, said["nonce"])
        except (ValueError, KeyError, TypeError):
            raise damaged(where, "it is no act of a journal") from None
        if crc32(data) != said["sum"]:
            raise damaged(where, "it has a wrong checksum")
        return act


def writer_token() -> str:
    """A name for one opening of a state to write it: the machine, the process, and a number like no other.

    >>> writer_token() == writer_token()
    False
    """
    return f"{socket.gethostname()}, process {os.getpid()}, {secrets.token_hex(8)}"


def told_writer(token: str) -> str:
    """A writer as errors name it.

    >>> told_writer("host, process 7, c0ffee")
    'host, process 7'
    """
    return token.rpartition(", ")[0] or token
