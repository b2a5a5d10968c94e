"""Dictionary forms of words as nouns, each distinct word asked for once."""

from remeasure.mentions.lexicon import Entry, Table

_KEPT = 100_000
_LONGEST = 64


class Lemmas(dict[str, str]):
    """Word in lower case to its lemma as a noun, filled as it is asked.

    It forgets all when it holds 100,000 words, so that memory stays flat. A run of more than 64 letters is no
    word and its own lemma.

    Source:
        TOSC card, section 4.2: lemminflect, NOUN.
    """

    def __init__(self):
        from lemminflect import getLemma

        super().__init__()
        self._ask = getLemma

    def __missing__(self, word: str) -> str:
        lemma = word
        if len(word) <= _LONGEST:
            lemma = next(iter(self._ask(word, upos="NOUN")), word)
        if len(self) >= _KEPT:
            self.clear()
        self[word] = lemma
        return lemma

    def of(self, words: list[str]) -> list[str]:
        """Return the lemma of each word."""
        return list(map(self.__getitem__, words))

    def forms(self, forms: dict[str, Entry]) -> dict[str, Entry]:
        """Return forms under their lemmas; of two that become equal the first one stays."""
        found: dict[str, Entry] = {}
        for form, entry in forms.items():
            found.setdefault(" ".join(self.of(form.split(" "))), entry)
        return found

    def table(self, table: Table) -> Table:
        """Return a table that is looked up with lemmas."""
        return Table.of(self.forms(table.forms))
