"""Questions of datasets without conversations: the question is both searched for and answered."""

from remeasure.records import Question, Turn
from remeasure.requests import question_id


def question(
    original: str,
    text: str,
    expected: str | None,
    relevant: tuple[str, ...],
    strata: dict[str, str],
) -> Question:
    """Return a question that is answered and, where a document is right, searched for.

    Args:
        original: the dataset's own id.
        text: the question.
        expected: the reference answer; null or blank: none.
        relevant: uris of the right documents.
        strata: what a table may be broken down by.
    """
    own = question_id(original)
    return Question(
        question_id=own,
        original_id=original,
        query=text if relevant else None,
        turns=(Turn(speaker="user", text=text),),
        expected=expected if expected and expected.strip() else None,
        relevant=relevant,
        group=own,
        strata=strata,
    )
