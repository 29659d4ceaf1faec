from __future__ import annotations

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.clients import add_token, remove_token
from routemaster.domain.names import parse_client
from routemaster.domain.token import new_token, parse_token
from routemaster.web.answers import as_json, json_object, nothing
from routemaster.web.callers import Callers


def blueprint(bus: Bus, callers: Callers) -> Blueprint:
    routes = Blueprint("api_tokens", __name__)

    @routes.get("/api_tokens")
    def listed() -> Response:
        callers.root()
        clients = bus.directory.table.clients.values()
        if not clients:
            return nothing()
        shown = [{"name": client.name, "token": client.token_id} for client in clients]
        return as_json(sorted(shown, key=lambda row: (row["name"], row["token"])))

    @routes.post("/api_tokens")
    def create() -> Response:
        callers.root()
        body = json_object({"name", "token"})
        name = parse_client(body.get("name"))
        given = body.get("token")
        token = new_token(name) if given is None else parse_token(given)
        add_token(bus, name, token)
        return as_json({"name": name, "token": token}, 201)

    @routes.delete("/api_tokens/<token>")
    def delete(token: str) -> Response:
        callers.root()
        remove_token(bus, token)
        return nothing()

    return routes
