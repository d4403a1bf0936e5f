"""Rules as data, and the way from rules to plans; what every syntax of rules has in common.

A syntax (Datalog, PomoLogic, PomoRA, EDN) reads a text into the values of `program`, or uses what is here to make plans
itself. `ground` says which variables a rule binds, `stratification` in which order relations are computed, `compile`
makes a plan of every relation that rules define.
"""
