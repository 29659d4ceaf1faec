"""A subscriber in Flask: prints each event. Needs flask, and `routemaster` without what it needs.

    python examples/flask_receiver.py UUID [SECRET] --port 8080

UUID is the subscription's `uuid`, SECRET what `GET /subscription/secret` says.
"""

from __future__ import annotations

import argparse

from flask import Flask

from routemaster.receiver import Busy, Event, Receiver, blueprint


def handle(event: Event) -> None:
    """Returns: processed. Raises: the whole batch comes again, so do what may be done twice."""
    if event["topic"] == "reports" and is_night():
        raise Busy(retry_after_s=600)
    print(event["topic"], event["type"], event["url"], event["t"], flush=True)


def is_night() -> bool:
    return False


def create_app(uuid: str, secrets: list[str]) -> Flask:
    app = Flask(__name__)
    app.register_blueprint(blueprint(Receiver(uuid=uuid, secrets=secrets, on_event=handle)))
    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Prints the events that a bus delivers.")
    parser.add_argument("uuid")
    parser.add_argument("secrets", nargs="*")
    parser.add_argument("--port", type=int, default=8080)
    asked = parser.parse_args()
    create_app(asked.uuid, asked.secrets).run(port=asked.port, threaded=True)
