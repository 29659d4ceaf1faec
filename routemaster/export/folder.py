"""Where an export lives: any of pyarrow's file systems, and a path in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs as arrow_fs


@dataclass(frozen=True, slots=True)
class Folder:
    fs: arrow_fs.FileSystem
    root: str

    @classmethod
    def of(cls, url: str) -> Folder:
        """`url` is a path of this machine, or file://, s3://, gs:// or hdfs://."""
        if "://" not in url:
            return cls(arrow_fs.LocalFileSystem(), str(Path(url).expanduser().absolute()))
        fs, root = arrow_fs.FileSystem.from_uri(url)
        return cls(fs, root.rstrip("/"))

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, arrow_fs.LocalFileSystem)

    def path(self, *names: str) -> str:
        return "/".join([self.root, *names])

    def entries(self, *names: str) -> list[arrow_fs.FileInfo]:
        """What is in a folder, by name; nothing when it does not exist."""
        selector = arrow_fs.FileSelector(self.path(*names), allow_not_found=True)
        return sorted(self.fs.get_file_info(selector), key=lambda info: str(info.base_name))
