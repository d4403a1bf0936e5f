"""The Soufflé-like syntax of Datalog: texts read into programs of rules."""
