"""Preflight looks at every model behind a system, and asks each in the way that the system will."""

import asyncio

import msgspec
import pytest

import systemkit
from loopback import Loopback
from remeasure.models import Model
from remeasure.preflight import endpoints
from remeasure.preflight.askings import Target
from remeasure.preflight.surveys import survey


def problems(server, role, tmp_path, reply, **more) -> list[str]:
    """What a visit to a model finds whose /v1/embeddings or /v1/rerank answers like that."""
    part = systemkit.part("it", base_url=server.base_url)
    server.pages["/v1/models"] = (200, b'{"data": [{"id": "it"}]}', {})
    server.pages[f"/v1/{'rerank' if role == 'reranker' else 'embeddings'}"] = reply
    spec = Model(title="it", base_url=server.base_url)
    target = Target(name="it", spec=spec, served_name="it", way=part.way, files=(), role=role, **more)

    async def visited():
        surveyed = asyncio.get_running_loop().create_future()
        surveyed.set_result(survey(target, tmp_path))
        return await endpoints.visit(endpoints.addresses([target])[0], surveyed, tmp_path)

    return list(asyncio.run(visited()).problems)


def vectors(n: int) -> tuple[int, bytes, dict]:
    return 200, msgspec.json.encode({"data": [{"embedding": [0.5] * n}]}), {}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (vectors(8), None),
        (vectors(4), "gives vectors of 4 dimensions, vector_dim is 8"),
        ((200, b"<html>", {}), "gives vectors of no dimensions, vector_dim is 8"),
        ((404, b'{"error": "not here"}', {}), "/embeddings: status 404"),
    ],
)
def test_an_embedder_is_asked_for_one_vector(tmp_path, reply, said):
    with Loopback() as server:
        found = problems(server, "embedder", tmp_path, reply, vector_dim=8)
    assert (found == []) if said is None else (len(found) == 1 and said in found[0])


def test_a_reranker_is_asked_to_rank_one_text(tmp_path):
    with Loopback() as server:
        assert problems(server, "reranker", tmp_path, (200, b'{"results": []}', {})) == []
        (found,) = problems(server, "reranker", tmp_path, (500, b"no", {}))
    assert "/rerank: status 500" in found
