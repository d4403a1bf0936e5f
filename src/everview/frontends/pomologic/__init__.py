"""PomoLogic: Datalog with named attributes, content ids, and rules that reach into the next tick."""
