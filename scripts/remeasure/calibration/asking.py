"""One stored answer put to a judge outside its cell, and what the reply says in the study's own terms."""

from collections.abc import Mapping
from typing import Any

from remeasure import requests, studies
from remeasure.cells import JudgeCell, JudgeSettings
from remeasure.graders.base import Unit, UnitGrader
from remeasure.records import Item, Reading, Request, Response


def request(
    answer_id: str, item: Item, response: Response, settings: JudgeSettings, study: str, texts: dict[str, str]
) -> Request:
    """Return the request about one answer, worded as in the study's own judging."""
    cell = JudgeCell(grader=settings.grader, gold=settings.gold, prompts=texts)
    sampling = {name: getattr(settings.sampling, name) for name in settings.sampling.__struct_fields__}
    body = requests.Body(
        model=settings.model,
        messages=studies.load(study, "messages").judge_messages(item, response, cell),
        max_tokens=settings.max_tokens,
        thinking=settings.thinking,
        response_format=settings.response_format,
        **sampling,
    )
    return requests.make_request(answer_id, body)


def verdict(
    grader: UnitGrader,
    options: Mapping[str, Any],
    item: Item,
    response: Response,
    reply: Response,
    reading: str,
) -> Reading:
    """Return what a judge's reply makes of an answer under a reading: published or strict."""
    unit = Unit(
        unit_id=item.item_id,
        items=(item,),
        responses=(response,),
        judge=(reply,),
        thinking=False,
        further=({},),
    )
    graded = grader.begin(options)(unit)
    return graded.strict if reading == "strict" else graded.published


def passes(reading: Reading) -> bool | None:
    """Return a verdict's yes or no; null where there is none."""
    return None if reading.score is None else reading.score == 1.0
