"""PomoRA: programs of relational algebra, with assignments that only add and loops that run until nothing is new."""
