"""The case reader: reads labels in images by OCR, finds phenotypes in the words, and looks diseases up.

It stands in for a vision-language model. It gets the request and nothing else: the text and the bytes of the
images. What it knows is a book: the phenotypes of rare diseases (``remeasure.phenotypes``), the one that the
composed cases are made from too, so its scores say how well labels are read and looked up, and nothing about
medicine. It sees no shapes: of a bar or a drawing it knows what is written beside it.

Without an image it says so. What it then tells of a diagnosis is what the book says, and it is told as that.
"""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from remeasure import image_check, tokens
from remeasure.embedded.case_request import CaseRequest, understand
from remeasure.embedded.chat import BadRequest, ChatRequest, Completion, texts_of
from remeasure.errors import RemeasureError
from remeasure.phenotypes import records
from remeasure.phenotypes.knowledge import Knowledge
from remeasure.phenotypes.phrases import Found, Phrases, words_of
from remeasure.phenotypes.records import Disease
from remeasure.records import OcrImage

N_NAMES = 10
MAX_PIXELS = 50_000_000
# What is told of a disease without an image to look at.
N_KNOWN = 6
NOTHING_KNOWN = "No diagnosis can be named: the case tells no phenotype that is known."
NO_IMAGE = "No image was given, so what the images show cannot be said."


@dataclass(frozen=True)
class Seen:
    """What was read in an image."""

    label: str
    title: str
    found: tuple[Found, ...]
    """Phenotypes, each once."""
    other: tuple[str, ...]
    """Further lines."""


def plain(name: str) -> str:
    """Return a name as it stands inside a sentence: small, but for abbreviations such as "EMG"."""
    return name if name[:2].isupper() or not name[:2].isalpha() else name[0].lower() + name[1:]


def listed(parts: list[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def with_article(title: str) -> str:
    """Return a heading as it stands in a sentence, "an eye examination"."""
    title = plain(title)
    return f"{'an' if title[:1].lower() in 'aeiou' else 'a'} {title}"


class CaseReader:
    """Answers requests about cases.

    Args:
        knowledge: diseases and phenotypes.
        engine: reads an image: bytes, their SHA-256 and a name in; made when the first image comes.
    """

    more_words: frozenset[str] = frozenset()

    def __init__(self, knowledge: Knowledge, engine=None) -> None:
        self._known, self._engine = knowledge, engine
        self._phrases = Phrases(knowledge.book.terms)
        self._diseases = {" ".join(words_of(d.name)): d for d in knowledge.diseases.values()}
        self._read: dict[str, OcrImage] = {}

    def answer(self, request: ChatRequest) -> Completion:
        """Answer a request; see ``case_request`` for what is understood.

        Raises:
            BadRequest: something else is asked for, or an image cannot be read.
        """
        asked = understand(request)
        seen = [self.see(label, data) for label, data in asked.images]
        text = self._names(asked, seen) if asked.wants == "list" else self._evidence(asked, seen)
        for stop in request.stops():
            text = text.partition(stop)[0]
        n_asked = sum(tokens.text_tokens(said) for message in request.messages for said in texts_of(message))
        words = text.split(" ")
        cut = request.max_tokens is not None and len(words) > request.max_tokens
        if cut:
            text = " ".join(words[: request.max_tokens])
        return Completion(text, n_asked, len(text.split()), "length" if cut else "stop")

    def close(self) -> None:
        """Nothing to give back; the process ends next."""

    def see(self, label: str, data: bytes) -> Seen:
        """Read an image: its first line is the heading, the others name what it shows.

        Raises:
            BadRequest: not a whole image, or too large.
        """
        lines = [line.text for line in self._lines(data, label).lines]
        found: dict[str, Found] = {}
        other: list[str] = []
        for line in lines[1:]:
            named = self._phrases.read(line)
            found |= {one.term: one for one in named if one.term not in found}
            if not named and any(len(word) > 2 for word in words_of(line)):
                other.append(line)
        return Seen(label, lines[0] if lines else "", tuple(found.values()), tuple(other))

    def _lines(self, data: bytes, label: str) -> OcrImage:
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._read:
            try:
                _check(data)
                if self._engine is None:
                    from remeasure.ocr import OcrEngine

                    self._engine = OcrEngine()
                self._read[sha256] = self._engine.read(data, sha256, label)
            except RemeasureError as error:
                raise BadRequest(f"{label}: the image {error}") from None
        return self._read[sha256]

    def _terms(self, asked: CaseRequest, seen: list[Seen]) -> list[str]:
        told = [one.term for one in self._phrases.find(asked.case)]
        return [*told, *(one.term for image in seen for one in image.found)]

    def _names(self, asked: CaseRequest, seen: list[Seen]) -> str:
        ranked = self._known.ranked(self._terms(asked, seen), N_NAMES)
        if not ranked:
            return NOTHING_KNOWN
        return "\n".join(f"{rank}. {disease.name}" for rank, (disease, _) in enumerate(ranked, start=1))

    def _evidence(self, asked: CaseRequest, seen: list[Seen]) -> str:
        lines = [_shown(image, self._labels(image)) for image in seen] or [NO_IMAGE]
        name = asked.diagnosis
        disease = self._diseases.get(" ".join(words_of(name))) if name else None
        if name and disease is None:
            lines.append(f"{name} is not among the diseases that are known here.")
        if not name and (guess := self._known.ranked(self._terms(asked, seen), 1)):
            disease = guess[0][0]
            lines.append(f"No diagnosis is given; the case fits {disease.name} best.")
        if not seen:
            lines += [self._from_books(disease)] if disease else []
        else:
            lines += self._together(disease, seen)
        return "\n\n".join(lines)

    def _labels(self, image: Seen) -> dict[str, str]:
        return {one.term: self._known.terms[one.term].label for one in image.found}

    def _together(self, disease: Disease | None, seen: list[Seen]) -> list[str]:
        """Return sentences about all images: what occurs together, what fits a disease, what does not."""
        own = [
            (
                image.label,
                [one for one in image.found if not disease or self._known.shares(disease, one.term)],
            )
            for image in seen
        ]
        telling = [(label, max(found, key=self._information)) for label, found in own if found]
        lines = []
        if len(telling) > 1:
            told = [f"{plain(one.name)} ({label})" for label, one in telling]
            lines.append(f"Across the images, {listed(told)} occur together.")
        if disease is None:
            return lines
        fits = [plain(one.name) for _, found in own for one in found]
        if fits:
            verb = "fits" if len(fits) == 1 else "fit"
            lines.append(f"{_sentence(listed(fits))} {verb} {disease.name}.")
        others = [
            f"{plain(one.name)} ({image.label})"
            for image, (_, found) in zip(seen, own, strict=True)
            for one in image.found
            if one not in found
        ]
        return [*lines, *([f"Not known of {disease.name}: {listed(others)}."] if others else [])]

    def _information(self, one: Found) -> tuple[float, str]:
        return self._known.information(one.term), one.term

    def _from_books(self, disease: Disease) -> str:
        """Return what is known of a disease where there is nothing to look at."""
        known = [plain(self._known.terms[term].label) for term in list(disease.frequency_of())[:N_KNOWN]]
        return f"From books, not from this case: {listed(known)} are known of {disease.name}."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _check(data: bytes) -> None:
    """Check that an image is whole before it is read; half of one would be read as if it were all.

    Raises:
        RemeasureError: not a whole PNG, JPEG, GIF or WebP, or too large.
    """
    facts = image_check.inspect(data)
    if facts.width_px * facts.height_px > MAX_PIXELS:
        raise RemeasureError(
            f"has {facts.width_px} x {facts.height_px} pixels, at most {MAX_PIXELS} are read"
        )
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise RemeasureError(f"cannot be decoded ({error})") from None


def _by_both_names(one: Found, label: str) -> str:
    return plain(one.name) if one.name == label else f"{plain(one.name)} ({plain(label)})"


def _shown(image: Seen, labels: dict[str, str]) -> str:
    """Return the sentence about one image, under its label.

    Args:
        image: what was read in it.
        labels: by id of its terms; a synonym in the image is told with the label after it.
    """
    shows = listed([_by_both_names(one, labels[one.term]) for one in image.found] or ["nothing known"])
    what = with_article(image.title) if image.title else "an image without words"
    other = f"; it also reads {listed(list(image.other))}" if image.other else ""
    return f"{image.label}: {what}; it shows {shows}{other}."


def load(*, book: Path) -> CaseReader:
    """Load the reader.

    Raises:
        RemeasureError: the book is missing or damaged.
    """
    return CaseReader(Knowledge(records.read(book)))
