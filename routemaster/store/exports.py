"""What waits in Redis for the export, and which of it the next file holds.

Rows are named by labels of one width that compare as text: a stream's ids, or milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Link

# A reply of some hundred kilobytes, and a millisecond or two of Redis' time.
PAGE_ROWS = 2000
CUT_FIELDS = 5000
PUBLISHES = "publishes"


@dataclass(frozen=True, slots=True)
class Claim:
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row of a stream."""

    id: str
    packed: bytes

    @property
    def label(self) -> str:
        return label_of(self.id)


class ExportStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self._streams = {"attempts": keys.attempts, "drops": keys.dropped}

    def oldest(self, dataset: str, most: int) -> list[Waiting]:
        return self._range(dataset, "-", "+", most)

    def claimed(self, dataset: str, claim: Claim) -> list[Waiting]:
        """Its rows; fewer than were claimed when too many came since."""
        return self._range(dataset, id_of(claim.first), id_of(claim.last), 1 << 53)

    def standing(self, dataset: str) -> Claim | None:
        """What was claimed and never published."""
        return self.claim(dataset, Claim("", ""))

    def claim(self, dataset: str, claim: Claim) -> Claim | None:
        """The claim that stands now: this one, or an earlier one. None when these rows were
        published meanwhile."""
        args: list[Arg] = [dataset, claim.first, claim.last]
        found = self._link.run(scripts.load().export_claim, [self._keys.export], args)
        return Claim(*(label.decode() for label in found)) if found else None

    def done(self, dataset: str, claim: Claim) -> bool:
        """The claim's file is safely there: its rows may go."""
        k = self._keys
        where = [k.export, k.attempts, k.dropped, k.publishes_cut]
        behind = next_id(claim.last) if dataset in self._streams else ""
        args: list[Arg] = [dataset, claim.first, claim.last, behind]
        return bool(self._link.run(scripts.load().export_done, where, args))

    def cut_publishes(
        self,
        published: str = "",
        upto_ms: int = 0,
        most: int = CUT_FIELDS,
        now_ms: int | str = "",
    ) -> tuple[Claim, dict[str, str]] | None:
        """Minutes that are over, of one day. When Redis may have forgotten what is in files:
        `published` is the label of the newest, `upto_ms` the end of its day."""
        k = self._keys
        where = [k.export, k.publishes, k.publishes_cut]
        found = self._link.run(
            scripts.load().publishes_cut, where, [now_ms, published, upto_ms, most]
        )
        if not found:
            return None
        label, flat = found[0].decode(), [word.decode() for word in found[1]]
        return Claim(label, label), dict(zip(flat[::2], flat[1::2], strict=True))

    def done_upto(self, dataset: str) -> str:
        """The last label that Redis knows to be published."""
        found = self._link.call("HGET", self._keys.export, f"{dataset}:done")
        return found.decode() if found else ""

    def _range(self, dataset: str, first: str, last: str, most: int) -> list[Waiting]:
        rows: list[Waiting] = []
        while len(rows) < most:
            count = min(PAGE_ROWS, most - len(rows))
            page = self._link.call("XRANGE", self._streams[dataset], first, last, "COUNT", count)
            rows += [Waiting(id.decode(), fields[1]) for id, fields in page]
            if len(page) < count:
                break
            first = f"({rows[-1].id}"
        return rows


def label_of(id: str) -> str:
    ms, _, number = id.partition("-")
    return f"{int(ms):015}{int(number):010}"


def id_of(label: str) -> str:
    return f"{int(label[:15])}-{int(label[15:])}"


def next_id(label: str) -> str:
    return f"{int(label[:15])}-{int(label[15:]) + 1}"
