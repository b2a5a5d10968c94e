"""What can go wrong with one command, in the words of ``systems.contract``."""


class Failed(Exception):
    """A command that has no result; the adapter lives on, unless the kind is ``fatal``.

    Args:
        kind: one of ``contract.KINDS``.
        text: one line.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
