"""A case: an invented patient with a real disease, and pictures of examinations."""

from dataclasses import dataclass

from remeasure.phenotypes.records import Disease


@dataclass(frozen=True)
class Finding:
    """A phenotype in a picture."""

    term: str
    label: str
    """As it is written there: the label of the term, or an exact synonym."""
    called: str
    """As the evidence points call it: the label or an exact synonym, not always that of the picture."""
    belongs: bool
    """Whether it is part of the disease."""


@dataclass(frozen=True)
class Picture:
    """An examination and what it shows."""

    kind: str
    findings: tuple[Finding, ...]

    @property
    def belongs(self) -> bool:
        """Whether it shows anything of the disease."""
        return any(finding.belongs for finding in self.findings)


@dataclass(frozen=True)
class Case:
    """An invented patient with a real disease."""

    disease: Disease
    age: int
    sex: str
    told: tuple[str, ...]
    """Labels of the phenotypes that the text tells."""
    pictures: tuple[Picture, ...]
