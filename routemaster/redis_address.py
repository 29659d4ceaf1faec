from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

# sun_path holds 104 bytes on macOS and 108 on Linux, with the terminating zero.
SOCKET_PATH_MAX_BYTES = 100
SECRETS = "password|secret|key|token|credential|signature"


def socket_path(data_dir: Path) -> Path:
    """Where the bus's own Redis listens: in its data directory, unless that path is too long."""
    resolved = data_dir.resolve()
    path = resolved / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_MAX_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"routemaster-{os.getuid()}-{name}" / "redis.sock"


def mask_url(url: str) -> str:
    """The URL without its secrets, which may stand before the @ or in the query."""
    url = re.sub(r"(://[^:@/?#]*):[^/?#]*@", r"\1:***@", url)
    return re.sub(rf"([?&][^=&#]*(?:{SECRETS})[^=&#]*=)[^&#]*", r"\1***", url, flags=re.I)
