"""The installed Chromium: where it is, which version, with which fonts and flags it runs."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.page_server import DOMAIN

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
INSTALL = "install it with `sudo apt-get install chromium`, or name another one with --browser PATH"

SandboxChoice = Literal["auto", "true", "false"]

# Replaces Playwright's own list (the last one counts). RenderDocument builds a new frame host for every page,
# a sixth of the processor time of a small page; PaintHolding goes on showing the page before.
_FEATURES_OFF = (
    "RenderDocument",
    "PaintHolding",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "MediaRouter",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "PreconnectToSearch",
    "Translate",
)


@dataclass(frozen=True)
class Fonts:
    """The fonts that pages can be drawn with.

    Attributes:
        count: number of faces that fontconfig lists.
        sha256: hash of the sorted names, styles and versions; both None without ``fc-list``.
    """

    count: int | None
    sha256: str | None

    def as_facts(self) -> dict[str, int | str | None]:
        """Return the two values as they stand in a stage record."""
        return {"count": self.count, "sha256": self.sha256}


def find_browser(named: Path | None) -> Path:
    """Return the program to run: the named one, or the first of the usual names on the search path.

    Raises:
        RemeasureError: there is none; says how to install it.
    """
    if named is not None:
        found = shutil.which(str(named))
        if found is None:
            raise RemeasureError(
                f"{named}: no such program (given with --browser); correct the path, or {INSTALL}"
            )
        return Path(found)
    for name in NAMES:
        if (found := shutil.which(name)) is not None:
            return Path(found)
    raise RemeasureError(f"no Chromium found (looked for {', '.join(NAMES)}); {INSTALL}")


def version(program: Path) -> str:
    """Return the version, for example ``156.0.8078.108``.

    Raises:
        RemeasureError: the program does not start, or is no Chromium.
    """
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RemeasureError(f"{program}: does not start ({error}); {INSTALL}") from None
    found = re.search(r"(?:Chromium|Chrome)\D*(\d+(?:\.\d+)+)", answer.stdout)
    if found is None:
        said = (answer.stdout or answer.stderr).strip()[:200]
        raise RemeasureError(f"{program}: expected a Chromium version, found {said!r}; {INSTALL}")
    return found[1]


def fonts() -> Fonts:
    """Return how many fonts are installed and a hash of the set; the same on machines with the same fonts."""
    program = shutil.which("fc-list")
    if program is None:
        return Fonts(None, None)
    form = "%{family}|%{style}|%{fontversion}|%{postscriptname}\n"
    answer = subprocess.run(
        [program, f"--format={form}"], capture_output=True, text=True, timeout=60, check=False
    )
    faces = sorted(line for line in answer.stdout.splitlines() if line.strip())
    return Fonts(len(faces), sha256_bytes("\n".join(faces).encode()))


def _reads(path: str, expected: str) -> bool:
    try:
        return Path(path).read_text().strip() == expected
    except OSError:
        return False


def sandbox_works() -> bool:
    """Whether Chromium can lock its own processes in: not as root, nor without user namespaces."""
    if os.geteuid() == 0:
        return False
    setuid = any(
        os.access(helper, os.X_OK) and os.stat(helper).st_mode & 0o4000
        for helper in ("/usr/lib/chromium/chrome-sandbox", "/opt/google/chrome/chrome-sandbox")
    )
    forbidden = (
        _reads("/proc/sys/kernel/unprivileged_userns_clone", "0")
        or _reads("/proc/sys/user/max_user_namespaces", "0")
        or _reads("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
    )
    return setuid or not forbidden


def use_sandbox(choice: SandboxChoice) -> bool:
    """Return whether the sandbox is on: as asked, or for ``auto`` wherever it can work."""
    return sandbox_works() if choice == "auto" else choice == "true"


def launch_flags(port: int | None, sandbox: bool) -> list[str]:
    """Return the command-line flags of the browser.

    Args:
        port: port of the page server, the only thing that any name leads to; None for no server at all.
        sandbox: whether the browser's own sandbox stays on.
    """
    # Rules apply to written addresses (127.0.0.1, [::1]) too, and the first that fits wins.
    served = f"MAP *.{DOMAIN}:80 127.0.0.1:{port} , " if port is not None else ""
    return [
        *([] if sandbox else ["--no-sandbox"]),
        f"--host-resolver-rules={served}MAP * ~NOTFOUND",
        "--no-proxy-server",  # a proxy of the environment would be a way out
        "--disable-quic",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        f"--disable-features={','.join(_FEATURES_OFF)}",
        "--disable-gpu",
        "--disable-checker-imaging",  # or the first frame may lack pictures that are still being decoded
        "--blink-settings=imageAnimationPolicy=2",  # moving pictures stand still on their first frame
        "--hide-scrollbars",
        "--disable-lcd-text",
        "--block-new-web-contents",
        "--disk-cache-size=1",
        "--mute-audio",
    ]
