"""Facts of entities, attributes and values in a database: declaring attributes, numbering entities, transacting."""

from everview.database.eav.transact import Transacted, transact

__all__ = ["Transacted", "transact"]
