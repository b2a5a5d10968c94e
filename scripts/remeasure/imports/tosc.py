"""Caption files of TOSC: ``answers/<name>.jsonl``, one line per image.

Source:
    TOSC card, sections 1.1, 2 and 6. The evaluator is not public, so its fields are not known. Read are the
    lines of the LLaVA question-answering script, whose file names and merging by concatenation it shares
    (``question_id``, ``prompt``, ``text``, ``answer_id``, ``model_id``, ``metadata``), and our own schema:
    ``key``, ``caption``, ``finish_reason``, ``model``, ``error``.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from remeasure.executors.replies import one_line
from remeasure.imports.reading import Imported, Row, json_lines
from remeasure.studies import tosc_names

_IDS = ("key", "question_id", "image")
_TEXTS = ("caption", "text")


def read(path: Path) -> Iterator[Imported]:
    """Yield the caption of each image; a line has one id (key, question_id, image) and one caption (or text).

    An id that is an image's file name or key (``17/origin``) becomes ``000017-origin``, the name of our item;
    others stay. ``finish_reason`` "length" is a caption that was cut off; the original's lines have none, so
    its cut captions cannot be told. An empty caption is an answer that is empty, a missing one a failure.

    Raises:
        RemeasureError: a line without exactly one id, or without exactly one caption field where no ``error``
            stands; names file and line.
    """
    for row in json_lines(path):
        finish, error = row.text("finish_reason"), row.text("error")
        is_bare = bool(error) and not any(name in row for name in _TEXTS)
        text = None if is_bare else row.text(_only(row, _TEXTS))
        common = {
            "foreign_id": item_of(row.id(_only(row, _IDS))),
            "finish": finish,
            "model": row.text("model") or row.text("model_id"),
            "place": row.place,
        }
        if error or text is None:
            said = one_line(error or "empty: no caption")
            yield Imported(status="failed", text=text, error=said, **common)
        elif finish == "length":
            yield Imported(status="cut_off", text=text, error="cut_off", **common)
        else:
            yield Imported(status="answered", text=text, **common)


def item_of(found: str) -> str:
    """Return the id of the item that an id means; one that is no key and no file name of an image stays.

    Source:
        TOSC card, sections 1.1 (file names) and 2 (keys).
    """
    for named in (tosc_names.parse_key(found), tosc_names.parse(PurePosixPath(found).name)):
        if isinstance(named, tosc_names.Name):
            return tosc_names.image_id(named.index, named.state)
    return found


def _only(row: Row, names: tuple[str, ...]) -> str:
    found = [name for name in names if name in row]
    if len(found) != 1:
        raise row.wrong(f"has {' and '.join(found) or 'none'} of {', '.join(names)}, expected exactly one")
    return found[0]
