"""Facts of entities, attributes and values at work: attributes are declared, entities numbered, facts transacted."""

from everview.database.eav.transact import Transacted, transact

__all__ = ["Transacted", "transact"]
