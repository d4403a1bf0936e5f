"""A state over HTTP in an S3 store: killed and resumed, written by two, and refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everview.errors import EverviewError, MissingRuntime, StoreError
from everview.traces.store import Store, arrow_objects
from everview.traces.store.arrow_objects import ArrowObjects, objects_at
from everview.traces.store.objects import Refusal
from object_store import PLAN, state_url, try_killed_writers, try_objects, try_two_writers


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_CACHE", str(tmp_path / "cache"))


def test_the_objects_of_a_store(s3: str, tmp_path: Path) -> None:
    try_objects(objects_at(state_url(s3)), tmp_path)


def test_an_answer_that_breaks_off_is_asked_for_again(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = objects_at(state_url(s3))
    assert isinstance(objects, ArrowObjects)
    objects.write("segments/a", b"one")
    plain, broken = objects._files, [OSError("the answer broke off"), OSError("and again")]

    class Broken:
        def open_input_stream(self, path: str) -> Any:
            if broken:
                raise broken.pop()
            return plain.open_input_stream(path)

    monkeypatch.setattr("everview.traces.store.objects.AGAIN", (0, 0))
    monkeypatch.setattr(objects, "_files", Broken())
    assert objects.read("segments/a") == b"one"
    broken[:] = [OSError("the answer broke off")] * 2
    assert objects.fetch("segments/a", tmp_path / "a")
    broken[:] = [OSError("the answer broke off")] * 3
    with pytest.raises(OSError, match="broke off"):
        objects.read("segments/a")
    broken[:] = [OSError("ACCESS_DENIED")] * 3
    with pytest.raises(Refusal):
        objects.read("segments/a")
    assert len(broken) == 2


def test_a_killed_writer_loses_nothing(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try_killed_writers(state_url(s3), tmp_path, monkeypatch)


def test_a_living_writer_elsewhere_is_fenced_off(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try_two_writers(state_url(s3), tmp_path, monkeypatch)


WRONG = [
    ("ftp://bank/state", StoreError, "a state cannot be at ftp://bank/state: Everview knows no store ftp://"),
    ("s3a://bank/state", StoreError, "write s3:// instead"),
    ("s3://bank", StoreError, "s3://bank does not name a place for a state"),
    ("s3://bank/state", StoreError, "there are no credentials for s3://bank/state"),
    ("gs://bank/state", MissingRuntime, "a state at gs:// needs google.cloud.storage, .* pip install google-cloud"),
    ("abfss://c@a.dfs.core.windows.net/state", MissingRuntime, "pip install azure-storage-blob azure-identity"),
]


@pytest.mark.parametrize(("url", "kind", "message"), WRONG)
def test_what_cannot_be_reached_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, kind: type[EverviewError], message: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(kind, match=message):
        Store.exists(url)


def test_a_bucket_that_is_not_there_and_a_server_that_does_not_answer(s3: str) -> None:
    with pytest.raises(StoreError, match="there is no bucket for s3://nowhere/state"):
        Store.create(state_url(s3).replace("bank", "nowhere"), PLAN)
    with pytest.raises(StoreError, match=r"the state at s3://bank/state-\d+ cannot be read") as raised:
        Store.attach(state_url("127.0.0.1:1"))
    assert "secret" not in str(raised.value)


def test_without_boto3(monkeypatch: pytest.MonkeyPatch, s3: str) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr("everview.traces.store.objects.import_module", missing)
    with pytest.raises(MissingRuntime, match=r"needs boto3, .*: pip install 'everview\[s3\]'"):
        Store.exists(state_url(s3))


def test_a_key_of_azure_that_is_not_escaped_is_told_and_not_shown() -> None:
    with pytest.raises(StoreError, match="a number for its port") as told:
        arrow_objects._blob_account("abfss://bank:Eby8/dM02==@money.dfs.core.windows.net/state")
    assert "Eby8" not in str(told.value)
