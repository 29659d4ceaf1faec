from __future__ import annotations

import logging
from urllib.parse import quote

from flask import Blueprint, Response, redirect, request

from routemaster.errors import Forbidden, TooMany, Unauthenticated
from routemaster.web.dashboard.pages import HERE, Pages
from routemaster.web.dashboard.sessions import COOKIE, FORM_COOKIE, Sessions

PATH = f"{HERE}/sign-in"
EXPIRED = "This page had been open for too long, or was not ours. Try again."

log = logging.getLogger(__name__)


def add(routes: Blueprint, sessions: Sessions, pages: Pages) -> None:
    def form(status: int = 200, problem: str = "") -> Response:
        id_ = sessions.form_id()
        response = pages.plain(
            "sign_in.html", status,
            problem=problem, next=wanted(), form_token=sessions.form_token(id_),
        )  # fmt: skip
        sessions.set_cookie(response, FORM_COOKIE, id_)
        return response

    @routes.get("/sign-in")
    def show() -> Response:
        try:
            sessions.current()
        except Unauthenticated:
            return form()
        return moved(wanted())

    @routes.post("/sign-in")
    def sign_in() -> Response:
        if not sessions.is_ours(sessions.form_id()):
            return form(403, EXPIRED)
        try:
            id_ = sessions.open(request.form.get("token", "").strip())
        except Unauthenticated:
            log.warning("sign-in refused")
            return form(401, "This is neither the root key nor a client’s token.")
        except TooMany as error:
            log.warning("sign-in throttled seconds=%s", error.retry_after_s)
            response = form(429, f"Too many tries. Try again in {error.retry_after_s} seconds.")
            response.headers["Retry-After"] = str(error.retry_after_s)
            return response
        response = moved(wanted())
        sessions.set_cookie(response, COOKIE, id_)
        sessions.forget_cookie(response, FORM_COOKIE)
        return response

    @routes.post("/sign-out")
    def sign_out() -> Response:
        session = sessions.current()
        if not sessions.is_ours(session.id):
            raise Forbidden(EXPIRED)
        sessions.close(session)
        response = moved(PATH)
        sessions.forget_cookie(response, COOKIE)
        return response


def wanted() -> str:
    """Where to go then: a page of ours, whatever the link said."""
    path = request.values.get("next", "")
    is_ours = path == HERE or path.startswith((f"{HERE}/", f"{HERE}?"))
    # Browsers read a backslash as a slash, and drop line breaks.
    return path if is_ours and path.isprintable() and "\\" not in path else HERE


def to_sign_in() -> Response:
    asked = request.full_path.rstrip("?") if request.method == "GET" else HERE
    query = "" if asked == HERE else f"?next={quote(asked, safe='/')}"
    return moved(PATH + query)


def moved(path: str) -> Response:
    response = redirect(path, 303)
    assert isinstance(response, Response)
    return response
