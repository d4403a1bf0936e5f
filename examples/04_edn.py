"""Facts and EDN queries: a small social graph, questions that stay answered, and tables as attributes."""

from __future__ import annotations

import everview as ev

db = ev.connect()

# A question may come before any fact; the attributes that it names are made with it.
ring = db.edn("{:find [?a ?b ?c] :where [[?a :follows ?b] [?b :follows ?c] [?c :follows ?a]]}", name="ring")
ring.subscribe(lambda changes, epoch: print(f"epoch {epoch}: rings", sorted(changes)))

done = db.transact("""
  [{:db/ident :name :db/valueType :db.type/string :db/cardinality :db.cardinality/one :db/unique :db.unique/identity}
   {:db/ident :follows :db/valueType :db.type/ref}
   {:db/id "ada" :name "Ada" :follows ["bob" "cy"]}
   {:db/id "bob" :name "Bob" :follows "cy"}
   {:db/id "cy"  :name "Cy"  :follows "ada"}]
""")
print("entities:", dict(done.tempids))

# Rules that call themselves, negation, arguments.
rules = """[[(reaches ?a ?b) [?a :follows ?b]]
            [(reaches ?a ?c) (reaches ?a ?b) [?b :follows ?c]]]"""
db.edn("[:find ?m :in $ % ?n :where [?a :name ?n] (reaches ?a ?b) [?b :name ?m]]", name="reached", args=[rules, "Ada"])
print("Ada reaches:", sorted(db.view("reached").rows()))

lonely = db.edn("[:find [?n ...] :where [?e :name ?n] (not [_ :follows ?e])]", name="lonely")
db.transact('[{:name "Dee" :follows [:name "Ada"]}]')
print("nobody follows:", lonely.answer())

# Retracting takes back what depended on it.
db.transact('[[:db/retract [:name "Cy"] :follows [:name "Ada"]]]')
print("Ada reaches:", sorted(db.view("reached").rows()))

# Tables are attributes, too: the key is the entity.
db.sql("CREATE TABLE city (id BIGINT PRIMARY KEY, name STRING NOT NULL, people BIGINT)")
db.transact('[{:city/id 1 :city/name "Delft" :city/people 103000} {:city/id 2 :city/name "Leiden"}]')
db.transact('[[:db/add [:name "Ada"] :lives-in 1] [:db/add [:name "Bob"] :lives-in 2]]')
print(
    db.edn("[:find ?n ?c :keys who where :where [?e :name ?n] [?e :lives-in ?x] [?x :city/name ?c] [?x :city/people]]")
)
print(db.edn("[:find (count ?e) (sum ?f) :where [?e :follows ?f]]"))
assert db.verify()
