"""What an endpoint serves, as far as it says so (placeholder until the preflight branch is merged)."""

import aiohttp
import msgspec

from remeasure.errors import did_you_mean
from remeasure.executors.replies import Failure
from remeasure.records import Record


class Served(Record, kw_only=True):
    models: tuple[str, ...]
    build: str | None = None
    context_tokens: int | None = None


def wrong_name(url, name, models):
    return f"{url}: serves {', '.join(models[:5])} and not {name!r}{did_you_mean(name, models)}; correct `served_name`"


async def look(session, base_url):
    try:
        async with session.get(base_url + "/models", allow_redirects=False) as response:
            body = await response.read()
    except TimeoutError:
        return Failure(kind="timeout", message="no reply")
    except (aiohttp.ClientError, OSError) as error:
        return Failure(kind="connection", message=type(error).__name__)
    if response.status != 200:
        return Failure(kind="rejected", message=f"status {response.status}", status=response.status)
    try:
        return Served(models=tuple(m["id"] for m in msgspec.json.decode(body)["data"]))
    except (msgspec.MsgspecError, KeyError, TypeError):
        return Failure(kind="html", message="not JSON")
