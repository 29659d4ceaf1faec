"""The receiver in Flask and in Django, neither of which is needed before it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routemaster.receiver.receiver import Receiver

if TYPE_CHECKING:
    from flask import Blueprint


def blueprint(receiver: Receiver, path: str = "/events", name: str = "routemaster") -> Blueprint:
    """`app.register_blueprint(blueprint(receiver))`"""
    from flask import Blueprint, Response, request

    routes = Blueprint(name, __name__)

    @routes.post(path)
    def receive() -> Response:
        answer = receiver.serve(request.environ)
        return Response(answer.text, answer.status, answer.headers, content_type="text/plain")

    return routes


def django_view(receiver: Receiver) -> Any:
    """`path("events", django_view(receiver))`"""
    from django.http import HttpRequest, HttpResponse
    from django.views.decorators.csrf import csrf_exempt

    # The bus shows its credentials with each request, and no browser's cookie.
    @csrf_exempt  # type: ignore[untyped-decorator]  # Django has no types
    def receive(request: HttpRequest) -> HttpResponse:
        # From the request and not its META: there the body may have been read already.
        answer = receiver.serve({**request.META, "wsgi.input": request})
        return HttpResponse(answer.text, "text/plain", answer.status, headers=answer.headers)

    return receive
