from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routemaster.client.event import Event


class Verbs:
    """The four kinds of events as methods, for whatever can publish one."""

    def publish(self, topic: str, event: Event) -> None:
        raise NotImplementedError

    def created(
        self,
        topic: str,
        url: str,
        *,
        t: int | None = None,
        data: Mapping[str, Any] | None = None,
        facet: str | None = None,
        id: str | None = None,
    ) -> None:
        self.publish(topic, Event("create", url, t, data, facet, None, id))

    def updated(
        self,
        topic: str,
        url: str,
        *,
        t: int | None = None,
        data: Mapping[str, Any] | None = None,
        facet: str | None = None,
        id: str | None = None,
    ) -> None:
        self.publish(topic, Event("update", url, t, data, facet, None, id))

    def deleted(
        self,
        topic: str,
        url: str,
        *,
        t: int | None = None,
        data: Mapping[str, Any] | None = None,
        facet: str | None = None,
        id: str | None = None,
    ) -> None:
        self.publish(topic, Event("delete", url, t, data, facet, None, id))

    def noop(
        self,
        topic: str,
        url: str,
        *,
        t: int | None = None,
        data: Mapping[str, Any] | None = None,
        facet: str | None = None,
        id: str | None = None,
    ) -> None:
        """Nothing changed; asks those who listen to look anyway, as for a back-fill."""
        self.publish(topic, Event("noop", url, t, data, facet, None, id))
