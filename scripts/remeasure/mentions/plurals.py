"""Singular and plural of English nouns."""

import re


def by_rule(word: str) -> str:
    """Return the regular plural of an English word.

    Source:
        TOSC card, section 4.8: s; es after s, x, z, ch, sh; consonant + y becomes ies.
    """
    if re.search(r"(?:s|x|z|ch|sh)$", word):
        return word + "es"
    return re.sub(r"y$", "ie", word) + "s" if re.search(r"[^aeiou]y$", word) else word + "s"


def numbers(word: str) -> list[str]:
    """Return a noun as it stands, its singular if it is a plural, and the plurals, without repetition.

    Source:
        lemminflect; the regular plural where it knows none.
    """
    from lemminflect import getInflection, getLemma

    def plurals(singular: str) -> list[str]:
        return list(getInflection(singular, "NNS")) or [by_rule(singular)]

    singular = next(iter(getLemma(word, upos="NOUN")), word)
    if singular == word or word not in plurals(singular):
        singular = word
    return list(dict.fromkeys([word, singular, *plurals(singular)]))
