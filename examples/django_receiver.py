"""A subscriber in Django, in one file: `django_view(receiver)` is a view like any other.

python examples/django_receiver.py UUID [SECRET] --port 8080
"""

from __future__ import annotations

import argparse
from wsgiref.simple_server import make_server

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.urls import path

from routemaster.receiver import Event, Receiver, django_view

urlpatterns: list[object] = []


def handle(event: Event) -> None:
    print(event["topic"], event["type"], event["url"], event["t"], flush=True)


def create_app(uuid: str, secrets: list[str]) -> WSGIHandler:
    receiver = Receiver(uuid=uuid, secrets=secrets, on_event=handle)
    urlpatterns.append(path("events", django_view(receiver)))
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
    return WSGIHandler()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Prints the events that a bus delivers.")
    parser.add_argument("uuid")
    parser.add_argument("secrets", nargs="*")
    parser.add_argument("--port", type=int, default=8080)
    asked = parser.parse_args()
    make_server("127.0.0.1", asked.port, create_app(asked.uuid, asked.secrets)).serve_forever()
