"""Steps of a session at random: changes of rows, of tables and of views, transactions, and the life of a directory."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torture.sessions.values import Column, drawn_type, literal
from torture.sessions.views import KINDS, Drawing


@dataclass
class Scene:
    """What a database has, as a step needs to know it: tables and views with their columns, keys and rows."""

    draw: random.Random
    tables: Mapping[str, Sequence[Column]]
    views: Mapping[str, Sequence[Column]]
    keys: Mapping[str, Sequence[str]]
    rows: Mapping[str, Sequence[object]]
    number: int

    def table(self) -> str | None:
        return self.draw.choice(sorted(self.tables)) if self.tables else None


def _row(scene: Scene, table: str) -> str:
    return "(" + "".join(f"{literal(scene.draw, column)}, " for column in scene.tables[table]) + ")"


def _old(scene: Scene, table: str) -> str | None:
    rows = scene.rows[table]
    return repr(scene.draw.choice(rows)) if rows else None


def create_table(scene: Scene) -> str | None:
    if len(scene.tables) > 4:
        return None
    name = f"t{scene.number}"
    columns = [f"a INTEGER {scene.draw.choice(('', 'NOT NULL'))}", "b BIGINT"]
    columns += [f"c{n} {drawn_type(scene.draw)}" for n in range(scene.draw.randint(0, 3))]
    extra = scene.draw.random()
    if extra < 0.15:
        columns += ["at TIMESTAMP", "WATERMARK FOR at AS at - INTERVAL 5 MINUTES"]
        if extra < 0.05:
            columns.append("TTL INTERVAL 20 MINUTES")
    elif extra < 0.55:
        columns.append("PRIMARY KEY (a)")
    if extra > 0.8:
        columns.append("g BIGINT GENERATED ALWAYS AS (b * 2 + coalesce(a, 0))")
    if scene.draw.random() < 0.15:
        columns.append("CHECK (b < 4)")
    others = [other for other, key in scene.keys.items() if list(key) == ["a"]]
    if others and scene.draw.random() < 0.2:
        columns.append(f"FOREIGN KEY (b) REFERENCES {scene.draw.choice(others)} (a)")
    if scene.draw.random() < 0.1:
        columns.append("UNIQUE (b)")
    return f"db.sql({f'CREATE TABLE {name} (' + ', '.join(columns) + ')'!r})"


def apply(scene: Scene) -> str | None:
    changes: list[str] = []
    for table in scene.draw.sample(sorted(scene.tables), min(len(scene.tables), scene.draw.randint(1, 2))):
        pairs: list[str] = []
        for _ in range(scene.draw.randint(0, 4)):
            old = _old(scene, table)
            if old is not None and scene.draw.random() < 0.5:
                pairs.append(f"({old}, -1)")
                if scene.draw.random() < 0.3:
                    pairs.append(f"({_row(scene, table)}, 1)")
            else:
                pairs.append(f"({_row(scene, table)}, {scene.draw.choice((1, 1, 1, 2, 3))})")
        changes.append(f"{table!r}: [{', '.join(pairs)}]")
    return f"db.apply({{{', '.join(changes)}}})" if changes else None


def _change(scene: Scene) -> str | None:
    table = scene.table()
    if table is None:
        return None
    draw = scene.draw
    rows = ", ".join(_row(scene, table) for _ in range(draw.randint(1, 3)))
    old = _old(scene, table)
    column = draw.choice(scene.tables[table])
    number = draw.choice([c.name for c in scene.tables[table] if c.is_whole] or [column.name])
    kinds = [f"tx.insert({table!r}, [{rows}])", f"tx.insert({table!r}, [{rows}])"]
    if scene.keys[table]:
        kinds += [f"tx.upsert({table!r}, [{rows}])"] * 2
    if old is not None:
        kinds.append(f"tx.delete({table!r}, [{old}])")
    other = scene.table()
    kinds += [
        f"db.sql('DELETE FROM {table} WHERE {number} = {draw.randint(0, 3)}')",
        f"db.sql('UPDATE {table} SET {number} = {number} + 1 WHERE {number} < {draw.randint(0, 4)}')",
        f"db.sql('UPDATE {table} SET {number} = NULL WHERE {number} = {draw.randint(0, 4)}')",
        f"db.sql('INSERT INTO {table} SELECT * FROM {other} LIMIT 0')",
        f"db.sql('INSERT INTO {table} SELECT * FROM {table}')",
        f"db.sql('DELETE FROM {table} WHERE {column.name} IS NULL')",
        f"db.sql('TRUNCATE TABLE {table}')",
        f"db.sql('MERGE INTO {table} t USING (SELECT b AS k, max(a) AS v FROM {other} GROUP BY b) s ON t.a = s.k "
        f"WHEN MATCHED AND s.v > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET b = s.v "
        f"WHEN NOT MATCHED AND s.k IS NOT NULL THEN INSERT (a, b) VALUES (s.k, s.v) "
        f"WHEN NOT MATCHED BY SOURCE AND t.b > 2 THEN UPDATE SET b = 0')",
        f"db.sql('INSERT OVERWRITE {table} SELECT * FROM {table} WHERE {number} > 0')",
    ]
    return draw.choice(kinds)


def change(scene: Scene) -> str | None:
    line = _change(scene)
    if line is None or line.startswith("db."):
        return line
    return f"with db.transaction() as tx: {line}"


def transaction(scene: Scene) -> str | None:
    """Several changes in one tick, some in a block of their own that is undone, and perhaps an error at the end."""
    lines = [_change(scene) for _ in range(scene.draw.randint(2, 4))]
    if None in lines:
        return None
    body: list[str] = []
    for line in lines:
        if scene.draw.random() < 0.25:
            body += [
                "    try:",
                "        with db.transaction() as tx2:",
                f"            {str(line).replace('tx.', 'tx2.')}",
            ]
            body += [f"            {scene.draw.choice(('1 / 0', 'pass'))}", "    except ZeroDivisionError: pass"]
        else:
            body.append(f"    {line}")
    if scene.draw.random() < 0.15:
        body.append("    raise UndoneError")
    return "with db.transaction() as tx:\n" + "\n".join(body)


def view(scene: Scene) -> str | None:
    if len(scene.views) > 9:
        return None
    drawing = Drawing(scene.draw, {**scene.tables, **scene.views})
    return scene.draw.choice(KINDS)(drawing, f"v{scene.number}", False)


def replace_view(scene: Scene) -> str | None:
    if not scene.views:
        return None
    drawing = Drawing(scene.draw, {**scene.tables, **scene.views})
    return scene.draw.choice(KINDS)(drawing, scene.draw.choice(sorted(scene.views)), True)


def drop(scene: Scene) -> str | None:
    names = sorted(scene.views) or sorted(scene.tables)
    if scene.draw.random() < 0.15:
        names = sorted(scene.tables) or names
    if not names:
        return None
    return f"db.drop({scene.draw.choice(names)!r}, cascade={scene.draw.random() < 0.4})"


def alter(scene: Scene) -> str | None:
    table = scene.table()
    if table is None:
        return None
    draw = scene.draw
    column = draw.choice(scene.tables[table])
    added = drawn_type(draw)
    number = draw.choice([c.name for c in scene.tables[table] if c.is_whole] or [column.name])
    what = draw.choice(
        (
            f"ADD COLUMN n{scene.number} {added}",
            f"ADD COLUMN n{scene.number} BIGINT DEFAULT 7",
            f"ADD COLUMN n{scene.number} BIGINT GENERATED ALWAYS AS (b + 1)",
            f"DROP COLUMN {column.name}",
            f"RENAME COLUMN {column.name} TO r{scene.number}",
            f"RENAME TO {table}r",
            f"ALTER COLUMN {number} TYPE {draw.choice(('BIGINT', 'DOUBLE', 'STRING', 'DECIMAL(10,2)', 'INT'))}",
            f"ALTER COLUMN {column.name} {draw.choice(('SET', 'DROP'))} NOT NULL",
            f"ADD CONSTRAINT k{scene.number} CHECK ({number} IS NULL OR {number} < 3)",
            f"ADD CONSTRAINT u{scene.number} UNIQUE ({number})",
            "ADD PRIMARY KEY (a)",
        )
    )
    return f"db.sql('ALTER TABLE {table} {what}')"


def advance(scene: Scene) -> str | None:
    return f"db.advance(clock(minutes={scene.number * 2 + scene.draw.randint(0, 1)}))"


def reopen(scene: Scene) -> str | None:
    return scene.draw.choice(("db = reopen(db)", "db = reopen(db)", "db.checkpoint()", "db.vacuum()"))


STEPS: tuple[tuple[Callable[[Scene], str | None], int], ...] = (
    (create_table, 2),
    (apply, 14),
    (change, 8),
    (transaction, 4),
    (view, 9),
    (replace_view, 2),
    (drop, 2),
    (alter, 3),
    (advance, 2),
    (reopen, 3),
)


def drawn_step(scene: Scene) -> str:
    """A step that this scene allows, as lines of Python."""
    if len(scene.tables) < 2:
        return create_table(scene) or ""
    while True:
        makers, weights = zip(*STEPS, strict=True)
        line = scene.draw.choices(makers, weights)[0](scene)
        if line is not None:
            return line
