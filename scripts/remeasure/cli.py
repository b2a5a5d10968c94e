"""One way to start a script: arguments, logging, one-line errors, exit codes."""

import argparse
import errno
import logging
import sys
from collections.abc import Callable, Sequence

from remeasure.errors import RemeasureError, ToBeContinued
from remeasure.interruption import Terminated, terminable

# What a full disk, a quota or a read-only folder say; never a defect of ours.
_OF_THE_SURROUNDINGS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EFBIG,
    errno.ELOOP,
)
# "Temporary failure, try again" in sysexits.h: no success (0), no mistake of the user (2).
TO_BE_CONTINUED = 75
_TOLD = "told to end before it was done"
_GOES_ON, _ANEW = "finished items are kept, the same command goes on", "the same command starts it anew"


def run(
    parser: argparse.ArgumentParser,
    work: Callable[[argparse.Namespace], None],
    argv: Sequence[str] | None = None,
    *,
    keeps: bool = False,
) -> int:
    """Parse ``argv``, set up logging to standard error and call ``work``.

    Args:
        parser: of the script.
        work: what the script does.
        argv: arguments; null for those of the process.
        keeps: whether the script, ended before it is done, keeps what it has and goes on from there.

    Returns:
        0 on success, 2 for a mistake that the user can repair (printed as one line), 75 after SIGTERM (the
        same command goes on), 130 after Ctrl-C. Any other exception is a defect of ours and keeps its
        traceback.
    """
    parser.add_argument("--debug", action="store_true", help="show the traceback of user errors, log more")
    args = parser.parse_args(argv)
    again = _GOES_ON if keeps else _ANEW
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if args.debug else logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
        datefmt="%H:%M:%S",
        force=True,
    )
    try:
        with terminable():
            work(args)
    except RemeasureError as error:
        if args.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if args.debug or error.errno not in _OF_THE_SURROUNDINGS:
            raise
        place = error.filename or "a file"
        print(
            f"error: {place}: cannot be written ({error.strerror}); make room or make it writable, then "
            f"rerun{': finished items are kept' if keeps else ''}",
            file=sys.stderr,
        )
        return 2
    except (ToBeContinued, Terminated) as reason:
        print(f"to be continued: {str(reason) or f'{_TOLD}; {again}'}", file=sys.stderr)
        return TO_BE_CONTINUED
    except KeyboardInterrupt:
        print(f"interrupted; {again}", file=sys.stderr)
        return 130
    return 0
