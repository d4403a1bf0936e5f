"""Texts that include files: what they mean, and errors that name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

import everview as ev
from everview.errors import DatalogError, UnboundVariable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.dl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_paths_are_relative_to_the_file_that_names_them(folder: Path) -> None:
    write(folder, roads__all='.decl road(a: number, b: number)\n.input road\n.include "far.dl"', roads__far="far(9).")
    db = ev.connect()
    db.datalog('.include "roads/all.dl" reach(x) :- road(1, x) ; far(x). // .include "no.dl"\nt(".include").')
    db.apply({"road": [((1, 2), 1)]})
    assert sorted(db.view("reach").rows()) == [(2,), (9,)]
    assert db.view("t").rows() == [(".include",)]


def test_what_was_included_stays_when_the_file_changes(folder: Path) -> None:
    write(folder, facts="p(1).")
    db = ev.connect(folder / "state")
    db.datalog('.include "facts.dl"')
    db.close()
    (folder / "facts.dl").unlink()
    with ev.connect(folder / "state") as again:
        assert again.view("p").rows() == [(1,)]


def test_removed_by_the_same_text(folder: Path) -> None:
    write(folder, facts="p(1).")
    db = ev.connect()
    db.datalog('.include "facts.dl" p(2).')
    db.remove_rules('.include "facts.dl"')
    assert db.view("p").rows() == [(2,)]


def test_inside_of_a_component_and_once(folder: Path) -> None:
    write(folder, types=".once .type Id <: number", body='.include "types.dl" .decl p(x: Id) p(1).')
    db = ev.connect()
    db.datalog('.include "types.dl" .comp C { .include "body.dl" } .init c = C q(x) :- c.p(x).')
    assert db.view("q").rows() == [(1,)]


def test_errors_name_file_and_line(folder: Path) -> None:
    write(folder, a="q(1).\n\np(x) :- q(1).", d="q(1)\n!", e="q(1).")
    db = ev.connect()
    with pytest.raises(UnboundVariable, match=r"line 3, column 1 of a\.dl"):
        db.datalog('.include "a.dl"')
    with pytest.raises(DatalogError, match=r"line 2, column 1 of d\.dl:\n    !"):
        db.datalog('// one\n .include "d.dl"')
    with pytest.raises(DatalogError, match=r"\n  line 3, column 18:"):
        db.datalog('// one\n .include "e.dl"\n .include "e.dl" r(x) :- q(1).')


def test_cycles_are_named(folder: Path) -> None:
    write(folder, a='.include "b.dl"', b='p(1).\n.include "a.dl"')
    with pytest.raises(DatalogError) as refused:
        ev.connect().datalog('.include "a.dl"')
    assert '"a.dl" includes itself: a.dl → b.dl → a.dl' in str(refused.value)
    assert "line 2, column 1 of b.dl" in str(refused.value)
    assert ".once" in (refused.value.hint or "")


def test_what_cannot_be_read(folder: Path) -> None:
    (folder / "bytes.dl").write_bytes(b"\xff\xfe")
    for text, said in (
        ('.include "none.dl"', "there is no file"),
        ('.include "."', "there is no file"),
        ('.include "bytes.dl"', "cannot be included"),
        ('.include ""', "names no file"),
        ('.include "a\\0b"', "names no file"),
        (".include x", "cannot stand here"),
    ):
        with pytest.raises(DatalogError) as refused:
            ev.connect().datalog(text)
        assert said in str(refused.value)
        assert refused.value.hint
        assert "line 1, column 1" in str(refused.value)
