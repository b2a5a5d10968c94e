"""A corpus in parts gives the same bytes as one job, and another number of parts does nothing over again."""

import pytest

CORPUS = "results/ci/corpora/factbook"
REQUESTS = [f"results/ci/pixelrag/nq/{arm}/page-reader-smollm2/requests.jsonl" for arm in ("base", "traf")]
SAME = (
    *("tiles/manifest.jsonl", "tiles/ocr.jsonl"),
    *("passages/passages.jsonl", "passages/extraction.jsonl"),
    *(f"{encoder}/{name}" for encoder in ("ocr-bge", "text-bge", "photo-efficientnet") for name in
      ("descriptors.h5", "order.txt", "index.faiss")),
)  # fmt: skip


@pytest.mark.slow
def test_three_parts_have_the_bytes_of_one_and_render_and_read_nothing_again(checkout):
    checkout.run(*REQUESTS)  # nothing, unless the small run is older than the code
    names = [*REQUESTS, *(f"{CORPUS}/{name}" for name in SAME)]
    before = {name: checkout.path(name).read_bytes() for name in names}
    answers = checkout.bytes_of("results/ci/pixelrag/nq/base/page-reader-smollm2/responses.jsonl")
    path = checkout.project / "config/runs/ci.yaml"
    path.write_text(path.read_text().replace("    pages: {test: 6", "    parts: 3\n    pages: {test: 6"))
    checkout.run(*REQUESTS)
    assert {name: checkout.path(name).read_bytes() for name in names} == before
    assert checkout.bytes_of("results/ci/pixelrag/nq/base/page-reader-smollm2/responses.jsonl") == answers
    for part in ("1of3", "2of3", "3of3"):
        logs = checkout.path(f"{CORPUS}/parts/{part}/logs")
        assert " 0 to render" in (logs / "render_part.log").read_text()
        assert " 0 distinct to read" in (logs / "read_part.log").read_text()
    plan = checkout.planned("results/ci/tables/table1.csv")
    assert {
        name: plan.get(name, 0) for name in ("render_part", "read_part", "embed_part", "merge_tiles")
    } == {
        "render_part": 0,
        "read_part": 0,
        "embed_part": 3,  # the trained encoder of the arm that was not asked for
        "merge_tiles": 0,
    }
