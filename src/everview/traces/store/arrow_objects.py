"""Object stores through `pyarrow.fs`, and the one thing it lacks: to make an object only if there is none.

Arrow reads, lists, writes and removes. It always overwrites, so `create` goes another way for each store, by the
library of those who run it: a request that the store itself refuses if the object exists.

| store | `create` | needs |
|---|---|---|
| `s3://` | `PutObject` with `If-None-Match: *` | boto3 |
| `gs://` | upload with `ifGenerationMatch=0` | google-cloud-storage |
| `abfss://` | upload with `If-None-Match: *` | azure-storage-blob, azure-identity |

HDFS is no store of this kind, see `everview.traces.store.hdfs_objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.fs as pafs

from everview.errors import StoreError
from everview.traces.store.hdfs_objects import HINT, hdfs_at
from everview.traces.store.objects import CHUNK, Objects, Refusal, Unanswered, library, read_again, require_scheme

Create = Callable[[str, bytes], bool]  # by the path that Arrow gives to an object
CREDENTIALS: Final = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, or let the machine have a role",
    "gs": "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS",
    "abfss": "run az login, or let the machine have an identity that may write there",
}


class ArrowObjects:
    """The objects below a path of one of Arrow's filesystems."""

    def __init__(self, url: str, files: Any, root: str, create: Create) -> None:
        self._url, self._files, self._root, self._create = url, files, root.rstrip("/"), create

    @property
    def url(self) -> str:
        return self._url

    def create(self, name: str, data: bytes) -> bool:
        return self._create(self._at(name), data)

    def write(self, name: str, data: bytes | memoryview) -> None:
        with self._told(), self._files.open_output_stream(self._at(name)) as stream:
            stream.write(data)

    def read(self, name: str) -> bytes | None:
        return read_again(lambda: self._read(name))

    def _read(self, name: str) -> bytes | None:
        try:
            with self._told(), self._files.open_input_stream(self._at(name)) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def fetch(self, name: str, target: Path) -> bool:
        return read_again(lambda: self._fetch(name, target))

    def _fetch(self, name: str, target: Path) -> bool:
        try:
            with (
                self._told(),
                self._files.open_input_stream(self._at(name)) as stream,
                target.open("wb") as file,
            ):
                while part := stream.read(CHUNK):
                    file.write(part)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int | None:
        with self._told():
            info = self._files.get_file_info(self._at(name))
        return info.size if info.type == pafs.FileType.File else None

    def names(self, under: str) -> list[str]:
        with self._told():
            infos = self._files.get_file_info(pafs.FileSelector(self._at(under), allow_not_found=True))
        return [each.base_name for each in infos if each.type == pafs.FileType.File]

    def delete(self, name: str) -> None:
        with self._told(), suppress(FileNotFoundError):
            self._files.delete_file(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _told(self) -> Generator[None]:
        """Errors of Arrow's as those of the operating system; what no one can mend by waiting, as one for the user."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise _refusal(self._url, error) or OSError(f"{self._url}: {_first_line(error)}") from error


def objects_at(url: str) -> Objects:
    """The objects below a URL; refused with a sentence that says what is missing."""
    require_scheme(url)
    scheme = urlsplit(url).scheme.lower()
    if not urlsplit(url).netloc or not urlsplit(url).path.strip("/"):
        hint = HINT if scheme == "hdfs" else f"give {scheme}://bucket/path"
        raise StoreError(f"{url} does not name a place for a state", hint=hint)
    if scheme == "hdfs":
        return hdfs_at(url)
    shown = _without_secrets(url)
    create = _CREATORS[scheme](url)  # first: it says best what is missing
    try:
        files, root = _by_key(url) if scheme == "abfss" and urlsplit(url).password else pafs.FileSystem.from_uri(url)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{shown} cannot be opened: {_first_line(error)}", hint=CREDENTIALS[scheme]) from error
    return ArrowObjects(shown, files, root, create)


# -- making an object only if there is none


def _s3(url: str) -> Create:
    parts, query = urlsplit(url), _options(url)
    boto3, exceptions = library("boto3", "s3"), library("botocore.exceptions", "s3")
    session = boto3.Session(aws_access_key_id=parts.username, aws_secret_access_key=parts.password)
    if session.get_credentials() is None:
        raise StoreError(f"there are no credentials for {_without_secrets(url)}", hint=CREDENTIALS["s3"])
    client = session.client("s3", endpoint_url=_endpoint(query), region_name=query.get("region"))

    def create(path: str, data: bytes) -> bool:
        bucket, _, key = path.partition("/")
        try:
            client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except exceptions.ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            if status == 412:
                return False
            if status >= 500 or status in (408, 409, 429):
                raise Unanswered(f"s3://{path}: {error}") from error
            raise _refusal(f"s3://{path}", error) or OSError(f"s3://{path}: {error}") from error
        except exceptions.NoCredentialsError as error:
            raise Refusal(f"there are no credentials for s3://{path}: {CREDENTIALS['s3']}") from error
        except exceptions.BotoCoreError as error:
            raise Unanswered(f"s3://{path}: {error}") from error
        return True

    return create


def _gs(url: str) -> Create:
    storage, exceptions = library("google.cloud.storage", "gs"), library("google.api_core.exceptions", "gs")
    auth, credentials = library("google.auth.exceptions", "gs"), library("google.auth.credentials", "gs")
    query, anonymous = _options(url), urlsplit(url).username == "anonymous"
    endpoint = _endpoint(query)
    try:
        client = storage.Client(
            project=query.get("project_id", "none" if anonymous else None),
            credentials=credentials.AnonymousCredentials() if anonymous else None,
            client_options={"api_endpoint": endpoint} if endpoint else None,
        )
    except (auth.DefaultCredentialsError, OSError) as error:
        raise StoreError(f"there are no credentials for {url}: {_first_line(error)}", hint=CREDENTIALS["gs"]) from error

    def create(path: str, data: bytes) -> bool:
        bucket, _, key = path.partition("/")
        try:
            client.bucket(bucket).blob(key).upload_from_string(data, if_generation_match=0)
        except exceptions.PreconditionFailed:
            return False
        except exceptions.ServerError as error:
            raise Unanswered(f"gs://{path}: {error}") from error
        except exceptions.ClientError as error:
            raise _refusal(f"gs://{path}", error) or OSError(f"gs://{path}: {error}") from error
        except Exception as error:  # what its transport raises has no root of its own
            raise Unanswered(f"gs://{path}: {error}") from error
        return True

    return create


def _abfss(url: str) -> Create:
    blob, core = library("azure.storage.blob", "abfss"), library("azure.core.exceptions", "abfss")
    identity = library("azure.identity", "abfss")
    secret = unquote(urlsplit(url).password or "")
    client = blob.BlobServiceClient(_blob_account(url), credential=secret or identity.DefaultAzureCredential())

    def create(path: str, data: bytes) -> bool:
        container, _, key = path.partition("/")
        try:
            client.get_blob_client(container, key).upload_blob(data, overwrite=False)
        except core.ResourceExistsError:
            return False
        except core.ClientAuthenticationError as error:
            raise Refusal(f"the store refuses {_without_secrets(url)}: {CREDENTIALS['abfss']}") from error
        except core.HttpResponseError as error:
            if error.status_code is None or error.status_code >= 500 or error.status_code in (408, 429):
                raise Unanswered(f"{key}: {error}") from error
            raise _refusal(key, error) or OSError(f"{key}: {error}") from error
        except core.AzureError as error:
            raise Unanswered(f"{key}: {error}") from error
        return True

    return create


def _blob_account(url: str) -> str:
    """The address of an account's blobs.

    >>> _blob_account("abfss://bank@money.dfs.core.windows.net/state")
    'https://money.blob.core.windows.net'
    >>> _blob_account("abfss://money:key@127.0.0.1:10000/bank/state?enable_tls=false")
    'http://127.0.0.1:10000/money'
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:  # the URL is not shown: it ends within the key
        raise StoreError(
            "an abfss:// URL has something else than a number for its port",
            hint="a key in a URL is escaped: urllib.parse.quote(key, safe='')",
        ) from None
    if not parts.username or parts.hostname is None:
        raise StoreError(
            f"{_without_secrets(url)} does not name a place for a state",
            hint="give abfss://container@account.dfs.core.windows.net/path",
        )
    if port is None:
        return f"https://{parts.hostname.replace('.dfs.', '.blob.')}"
    scheme = "http" if _options(url).get("enable_tls") == "false" else "https"
    return f"{scheme}://{parts.hostname}:{port}/{parts.username}"


def _by_key(url: str) -> tuple[Any, str]:
    """Arrow's filesystem of an account, opened by its key, which no URL of Arrow's can carry; and the root in it."""
    parts, address = urlsplit(url), urlsplit(_blob_account(url))
    azure: Any = pafs.AzureFileSystem
    key = unquote(parts.password or "")
    if parts.port is None:
        return azure(address.netloc.partition(".")[0], account_key=key), f"{parts.username}{parts.path}"
    by = {"blob_storage_authority": address.netloc, "dfs_storage_authority": address.netloc}
    by |= {"blob_storage_scheme": address.scheme, "dfs_storage_scheme": address.scheme}
    return azure(parts.username, account_key=key, **by), parts.path.lstrip("/")


def _options(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def _endpoint(options: dict[str, str]) -> str | None:
    """The address of a server in place of the store's own; None if the options name none."""
    endpoint = options.get("endpoint_override")
    return f"{options.get('scheme', 'https')}://{endpoint}" if endpoint and "://" not in endpoint else endpoint


_CREATORS: Final[dict[str, Callable[[str], Create]]] = {"s3": _s3, "gs": _gs, "abfss": _abfss}


# -- errors


_REFUSALS: Final = ("ACCESS_DENIED", "AccessDenied", "INVALID_ACCESS_KEY", "InvalidAccessKeyId", "SIGNATURE", "403")
_NOWHERE: Final = ("NO_SUCH_BUCKET", "NoSuchBucket", "ContainerNotFound")


def _refusal(where: str, error: Exception) -> Refusal | None:
    """What the store refuses for good, in a sentence: it does not let us in, or there is no such bucket."""
    said = str(error)
    if any(word in said for word in _NOWHERE):
        return Refusal(f"there is no bucket for {where}; make it first, or check the name")
    if any(word in said for word in _REFUSALS):
        return Refusal(
            f"the store does not let us in at {where}; see that the credentials may list, read, write and delete there"
        )
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _without_secrets(url: str) -> str:
    """A URL without its password, for messages.

    >>> _without_secrets("s3://key:secret@bank/state?region=eu-1")
    's3://bank/state'
    """
    parts = urlsplit(url)
    user, sign, host = parts.netloc.rpartition("@")
    if parts.scheme.lower() == "abfss":  # the container, or the account
        host = f"{user.partition(':')[0]}{sign}{host}"
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
