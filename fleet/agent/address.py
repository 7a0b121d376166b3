"""Where the server is, and whether the way there goes through a proxy."""

import ipaddress
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit


class AddressError(ValueError):
    """The server's address cannot be used; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where the server is."""

    url: str
    is_encrypted: bool
    host: str
    port: int
    path: str


def read_address(url: str) -> Server:
    """Return the server of an `https://` address; plain `http://` is for this machine alone."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"{url!r} is no address: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise AddressError(f"{url!r} is no address; write https://kanade.example.org")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise AddressError(f"{url!r}: an address has no user, query or fragment")
    encrypted = parts.scheme == "https"
    if not encrypted and not _is_loopback(parts.hostname):
        raise AddressError(f"{url!r} is not encrypted; write https:// (http:// is for 127.0.0.1)")
    port = port or (443 if encrypted else 80)
    return Server(url.rstrip("/"), encrypted, parts.hostname, port, parts.path.rstrip("/"))


def proxy_for(server: Server) -> SplitResult | None:
    """The proxy that the environment names for this server (`https_proxy`, `no_proxy`)."""
    proxies = urllib.request.getproxies_environment()
    found = proxies.get("https") or proxies.get("all")
    # Without encryption there is only this machine, and no proxy on the way to it.
    if not found or not server.is_encrypted or _is_loopback(server.host):
        return None
    # With a proxy in the environment this is the standard reading of `no_proxy`.
    if urllib.request.proxy_bypass(server.host):
        return None
    parts = urlsplit(found if "://" in found else f"http://{found}")
    if parts.scheme != "http" or not parts.hostname:
        raise AddressError("https_proxy cannot be used; write http://host:port")
    return parts


def proxy_headers(proxy: SplitResult) -> dict[str, str]:
    """What the proxy wants to know of its user."""
    if proxy.username is None:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
