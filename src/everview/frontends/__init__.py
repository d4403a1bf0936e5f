"""Front ends: each reads a way of asking (SQL, rules, GraphSpecs, method calls) into logical plans."""
