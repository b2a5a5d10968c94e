"""One GET over https, redirects looked at before they are followed."""

import http.client
import ssl
import urllib.error
import urllib.request
from urllib.parse import urljoin, urlsplit

from remeasure import addresses
from remeasure.errors import RemeasureError

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5


class NoConnection(Exception):
    """Nobody answers, or not in the words of HTTP; another try may do better."""


def open_url(
    url: str, headers: dict[str, str], timeout_s: float, listed: str = addresses.LIST
) -> http.client.HTTPResponse:
    """Return the reply behind an address and its redirects, whatever its status; its body is not read.

    Args:
        url: an address that ``addresses.problem_of`` has nothing against.
        headers: what is sent beside the usual.
        timeout_s: for the connection and for every block of the reply.
        listed: where the address stands and can be corrected.

    Raises:
        RemeasureError: a redirect to an address that is not allowed, too many of them, a wrong certificate.
        NoConnection: nobody answers.
    """
    headers = {"User-Agent": "remeasure", "Accept-Encoding": "identity"} | headers
    began_here = addresses.is_loopback(urlsplit(url).hostname)
    place = url
    for _ in range(_MAX_REDIRECTS + 1):
        reply = _call(place, headers, timeout_s)
        if reply.status not in _REDIRECTS:
            return reply
        target = reply.headers.get("Location", "")
        reply.close()
        place = _next(place, target)
        problem = addresses.problem_of(place)
        if not problem and not began_here and addresses.is_loopback(urlsplit(place).hostname):
            problem = f"{addresses.said(place)} is this computer"
        if problem:
            raise RemeasureError(f"{addresses.said(url)}: leads elsewhere: {problem}; correct {listed}")
    raise RemeasureError(f"{addresses.said(url)}: more than {_MAX_REDIRECTS} redirects; correct {listed}")


def _next(place: str, target: str) -> str:
    try:
        return urljoin(place, target)
    except ValueError:
        return target


def _call(url: str, headers: dict[str, str], timeout_s: float) -> http.client.HTTPResponse:
    is_here = addresses.is_loopback(urlsplit(url).hostname)
    # The usual opener would follow redirects by itself, and read files.
    opener = urllib.request.OpenerDirector()
    for handler in (
        # Whatever proxy is set, this computer is reached without it.
        urllib.request.ProxyHandler({} if is_here else None),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
    ):
        opener.add_handler(handler)
    try:
        return opener.open(urllib.request.Request(url, headers=headers), timeout=timeout_s)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise RemeasureError(
                f"{addresses.said(url)}: its certificate cannot be trusted ({reason.verify_message}); "
                "correct the certificates of this computer (SSL_CERT_FILE), never the check"
            ) from None
        raise NoConnection(f"no connection to {urlsplit(url).hostname} ({type(reason).__name__})") from None
