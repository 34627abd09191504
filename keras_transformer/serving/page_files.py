"""The files of the web page, served at all paths without a route."""

from __future__ import annotations

from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.types import Scope

from keras_transformer.serving.errors import not_allowed


class Page(StaticFiles):
    """The web page; a path whose route takes other methods is refused with 405, not 404.

    The page takes every path, so the routes themselves never answer 405.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file of the page; raise HTTPException 404 or 405 if there is none."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code not in (404, 405):
                raise
            routes = [x for x in scope["app"].routes if not isinstance(x, Mount)]
            allowed = [
                method
                for method in ("GET", "HEAD", "POST")
                if any(x.matches({**scope, "method": method})[0] == Match.FULL for x in routes)
            ]
            if allowed or error.status_code == 405:
                raise not_allowed(scope["method"], allowed or ["GET", "HEAD"]) from error
            raise
