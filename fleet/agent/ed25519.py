"""Ed25519 signatures, verified in plain Python (RFC 8032, section 5.1).

Only verifying: the agent has no secret of this kind, so nothing here needs constant time. Stricter
than the RFC where it leaves a choice: points must be encoded canonically, and neither the key nor
R may be of small order, because such a key "verifies" a trivial signature on every message.
"""

from hashlib import sha512

KEY_BYTES = 32
SIGNATURE_BYTES = 64

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_D2 = 2 * _D % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
_SIGN_BIT = 1 << 255
_COFACTOR_DOUBLINGS = 3

# Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z.
_Point = tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


class BadKeyError(ValueError):
    """The bytes are no public key that can be trusted to mean one signer."""


def require_key(key: bytes) -> bytes:
    """Return `key` (32 bytes); BadKeyError when it is malformed or of small order."""
    if _strict_point(key) is None:
        raise BadKeyError("not an Ed25519 public key: 32 bytes, canonical, not of small order")
    return key


def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (64 bytes) was made over `message` with the secret of `key`.

    Malformed, non-canonical and small-order input is an ordinary False.
    """
    if len(signature) != SIGNATURE_BYTES:
        return False
    point_a, point_r = _strict_point(key), _strict_point(signature[:KEY_BYTES])
    scalar = int.from_bytes(signature[KEY_BYTES:], "little")
    if point_a is None or point_r is None or scalar >= _L:
        return False
    digest = sha512(signature[:KEY_BYTES] + key + message).digest()
    challenge = int.from_bytes(digest, "little") % _L
    return _same(_combine(scalar, challenge, _negate(point_a)), point_r)


def _strict_point(encoded: bytes) -> _Point | None:
    point = _decode(encoded)
    if point is None or _same(_cleared(point), _NEUTRAL):
        return None
    return point


def _decode(encoded: bytes) -> _Point | None:
    """The point of 32 bytes; None when y >= p, off the curve, or x = 0 with the sign set."""
    if len(encoded) != KEY_BYTES:
        return None
    number = int.from_bytes(encoded, "little")
    odd, y = bool(number & _SIGN_BIT), number & (_SIGN_BIT - 1)
    if y >= _P:
        return None
    x = _root(y, odd=odd)
    return None if x is None else (x, y, 1, x * y % _P)


def _root(y: int, *, odd: bool) -> int | None:
    """The x with -x² + y² = 1 + d·x²·y² and the asked parity."""
    numerator, denominator = (y * y - 1) % _P, (_D * y * y + 1) % _P
    cube = pow(denominator, 3, _P)
    x = numerator * cube % _P
    x = x * pow(numerator * cube * pow(denominator, 4, _P), (_P - 5) // 8, _P) % _P
    squared = denominator * x * x % _P
    if squared == -numerator % _P:
        x = x * _ROOT_OF_MINUS_ONE % _P
    elif squared != numerator:
        return None
    if x == 0 and odd:
        return None
    return _P - x if bool(x & 1) != odd else x


def _cleared(point: _Point) -> _Point:
    for _ in range(_COFACTOR_DOUBLINGS):
        point = _add(point, point)
    return point


def _negate(point: _Point) -> _Point:
    x, y, z, t = point
    return (-x % _P, y, z, -t % _P)


def _same(left: _Point, right: _Point) -> bool:
    cross_x = left[0] * right[2] - right[0] * left[2]
    cross_y = left[1] * right[2] - right[1] * left[2]
    return cross_x % _P == 0 and cross_y % _P == 0


def _add(left: _Point, right: _Point) -> _Point:
    """The sum; complete for this curve, so it doubles as well."""
    x1, y1, z1, t1 = left
    x2, y2, z2, t2 = right
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = t1 * _D2 * t2 % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _combine(base_scalar: int, scalar: int, point: _Point) -> _Point:
    """base_scalar·B + scalar·point, bit by bit for both at once."""
    table = (_NEUTRAL, _BASE, point, _add(_BASE, point))
    total = _NEUTRAL
    for bit in range(max(base_scalar.bit_length(), scalar.bit_length()) - 1, -1, -1):
        total = _add(total, total)
        chosen = (base_scalar >> bit & 1) | (scalar >> bit & 1) << 1
        if chosen:
            total = _add(total, table[chosen])
    return total


def _base_point() -> _Point:
    y = 4 * pow(5, -1, _P) % _P
    x = _root(y, odd=False)
    assert x is not None
    return (x, y, 1, x * y % _P)


_BASE = _base_point()
