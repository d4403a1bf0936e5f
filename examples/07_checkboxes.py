"""State that follows from events: checkboxes that clicks turn on and off, by rules that reach into the next tick."""

import everview as ev

db = ev.connect()
db.create_table("box", "id STRING NOT NULL, page STRING NOT NULL", key="id")
db.create_table("clicks", "id STRING NOT NULL")
db.datalog(
    """
    // What a tick derives by @next holds in the next one: a state is carried on, or turned by a click.
    checkbox(id: Id, state: S)@next     :- checkbox(id: Id, state: S), !clicks(id: Id).
    checkbox(id: Id, state: true)@next  :- checkbox(id: Id, state: false), clicks(id: Id).
    checkbox(id: Id, state: false)@next :- checkbox(id: Id, state: true), clicks(id: Id).

    // A box that was not there a tick ago is off.
    checkbox(id: Id, state: false) :- box(id: Id), !known(id: Id).
    known(id: Id)@next             :- box(id: Id).

    ticked(page: Page, boxes: N) :- box(page: Page), N := count : on(page: Page).
    on(page: Page, id: Id)       :- box(id: Id, page: Page), checkbox(id: Id, state: true).
    """,
    dialect="pomologic",
)
db.view("ticked").subscribe(lambda changes, epoch: print(f"epoch {epoch}: {dict(r for r, w in changes if w > 0)}"))


def click(*ids: str) -> None:
    """A click is a row that is there for one tick."""
    db.apply({"clicks": [((id_,), +1) for id_ in ids]})
    db.apply({"clicks": [((id_,), -1) for id_ in ids]})


db.apply({"box": [(("news", "mail"), +1), (("offers", "mail"), +1), (("dark", "looks"), +1)]})
click("news", "dark")
click("offers")
click("news")
assert dict(db.view("checkbox").rows()) == {"news": False, "offers": True, "dark": True}
assert db.verify()

# Which pages lead to which, as a program of relational algebra.
db.create_table("links", "a STRING NOT NULL, b STRING NOT NULL")
db.datalog(
    """
    reach := links;
    while change do
      reach := projection([:a, :b], natural_join(rename([b: :via], reach), rename([a: :via], links)));
    end
    """,
    dialect="pomora",
)
db.apply({"links": [(("home", "mail"), +1), (("mail", "looks"), +1)]})
print(sorted(db.view("reach").rows()))
