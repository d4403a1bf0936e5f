"""Roles: what a client of a server may do."""

from __future__ import annotations

from enum import IntEnum

from everview.errors import EverviewError, NotPermitted


class Role(IntEnum):
    """The rights of a client: each role includes the roles before it."""

    READ = 1  # queries, subscriptions
    WRITE = 2  # changes of rows
    ADMIN = 3  # changes of definitions

    @classmethod
    def named(cls, name: str) -> Role:
        """The role of a name.

        >>> Role.named("write")
        <Role.WRITE: 2>
        """
        if name.upper() not in cls.__members__:
            raise EverviewError(f"{name!r} is no role", hint="one of read, write, admin")
        return cls[name.upper()]

    def require(self, wanted: Role, what: str) -> None:
        """Refuse what needs a higher role."""
        if self < wanted:
            raise NotPermitted(
                f"{what} needs the role {wanted.name.lower()}, and this is {self.name.lower()}",
                hint="use a token of that role",
            )
