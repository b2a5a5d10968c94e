"""Text of answers: thinking removed, labels removed, normal form for comparison."""

import re
import string

ANSWER_LABEL = "Exact Answer: "
SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
"""What stands between two sentences: white space behind a full stop and the like, or ends of lines."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ANY_LABEL = re.compile(r"\bexact\s+answer[*_`\s]*:[*_`\s]*", re.IGNORECASE)


def strip_thinking(text: str) -> tuple[str, bool | None]:
    """Cut the thinking part off a reply.

    Returns:
        The answer, and whether the thinking was closed: None where the reply holds no tag at all. A chat
        template may open the tag inside the prompt, so a reply with only the closing tag is closed, and a
        reply without a tag may still be thinking that was cut off; the caller knows the response's status.

    Edges:
        With an opening tag only, what follows it is returned as the answer, as the original does; a fragment
        ``think>`` that is no tag cuts as well. White space is kept.

    Source:
        PixelRAG, the reader's client: both tags, else the fragment ``think>``, else unchanged.
    """
    opened, closed = text.rfind("<think>"), text.rfind("</think>")
    if opened >= 0 and closed >= 0:
        answer = text[closed + len("</think>") :]
    else:
        answer = text.rpartition("think>")[2]
    return answer, (closed > opened if max(opened, closed) >= 0 else None)


def normalise(text: str) -> str:
    """Return the form in which two short answers are compared.

    Lower case; ASCII punctuation deleted, not replaced ("rock-n-roll" becomes "rocknroll"); the whole words
    a, an, the replaced by a space; white space collapsed. Accents and other punctuation stay.

    Edges:
        Articles and punctuation alone ("The", "A.", "?!") become the empty string.

    Source:
        The SQuAD evaluation script; PixelRAG uses it unchanged for exact match.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def drop_label(text: str) -> str:
    """Remove every literal "Exact Answer: " (this case, with the space) and outer white space.

    Source:
        PixelRAG, exact match, step 2.
    """
    return text.replace(ANSWER_LABEL, "").strip()


def after_label(text: str) -> str:
    """Return the line after the last answer label, whatever its case and markup; without a label all of it.

    Edges:
        A label with nothing behind it gives the empty string.
    """
    labels = list(_ANY_LABEL.finditer(text))
    if not labels:
        return text.strip()
    rest = text[labels[-1].end() :].strip()
    return rest.splitlines()[0].strip(" \t*_`") if rest else ""


def contains(answer: str, reference: str) -> bool:
    """Say whether the words of ``reference`` stand in ``answer`` one after the other, both in normal form.

    Edges:
        False when either side is empty. "19" is not contained in "1997": whole words count.
    """
    inner, outer = normalise(reference), normalise(answer)
    return bool(inner) and f" {inner} " in f" {outer} "
