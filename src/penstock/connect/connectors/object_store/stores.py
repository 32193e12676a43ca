"""Where files go. One that can be seen is whole: an object of S3 is there when its upload is complete, and a file of a file
system gets its name when it is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from penstock.connect.errors import InvalidConfig, RetriableError

CONNECT_TIMEOUT_S: Final = 10
REQUEST_TIMEOUT_S: Final = 60


class Store:
    def __init__(self, files: fs.FileSystem, root: str, *, is_s3: bool) -> None:
        self._files, self._root, self._is_s3 = files, root, is_s3

    def write(self, path: str, data: bytes | pa.Buffer) -> None:
        """In place of what has this name. RetriableError."""
        whole = f"{self._root}/{path}" if self._root else path
        try:
            if self._is_s3:
                with self._files.open_output_stream(whole) as stream:
                    stream.write(data)
                return
            name = PurePosixPath(whole)
            self._files.create_dir(str(name.parent), recursive=True)
            # Readers leave out names that begin with a point.
            hidden = str(name.parent / f".{name.name}.tmp")
            with self._files.open_output_stream(hidden) as stream:
                stream.write(data)
            self._files.move(hidden, whole)
        except OSError as error:
            raise RetriableError(f"{whole} cannot be written: {error}") from error


def store_of(values: Mapping[str, Any]) -> Store:
    """By `store.url`. InvalidConfig."""
    bucket = values["s3.bucket.name"] or ""
    url = values["store.url"] or ""
    found = urlsplit(url)
    if found.scheme == "file" or url.startswith("/"):
        folder = unquote(found.path).rstrip("/")
        return Store(fs.LocalFileSystem(), f"{folder}/{bucket}" if bucket else folder, is_s3=False)
    if found.scheme == "hdfs":
        folder = found.path.rstrip("/")
        try:
            files = fs.HadoopFileSystem(found.hostname or "default", found.port or 0)
        except OSError as error:
            raise RetriableError(f"{url} cannot be reached: {error}") from error
        return Store(files, f"{folder}/{bucket}" if bucket else folder, is_s3=False)
    if found.scheme not in ("", "http", "https"):
        raise InvalidConfig(f"store.url: there is no store for {found.scheme}: (http, https, file, hdfs)")
    if not bucket:
        raise InvalidConfig('Missing required configuration "s3.bucket.name" which has no default value.')
    return Store(_s3(values, url), bucket, is_s3=True)


def _s3(values: Mapping[str, Any], url: str) -> fs.S3FileSystem:
    options: dict[str, Any] = {
        "region": values["s3.region"],
        "connect_timeout": CONNECT_TIMEOUT_S,
        "request_timeout": REQUEST_TIMEOUT_S,
        "force_virtual_addressing": not values["s3.path.style.access.enabled"],
    }
    secret = values["aws.secret.access.key"]
    if values["aws.access.key.id"] and secret is not None:
        options["access_key"] = values["aws.access.key.id"]
        options["secret_key"] = getattr(secret, "value", secret)
    if url:
        options["endpoint_override"] = url.rstrip("/")
    return fs.S3FileSystem(**options)
