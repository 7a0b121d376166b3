"""The verifier against the RFC's vectors, `cryptography`, and points that must be refused."""

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent import ed25519

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493

# RFC 8032, section 7.1: public key, message, signature.
VECTORS = {
    "TEST 1": (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    "TEST 2": (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    "TEST 3": (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
    "TEST SHA(abc)": (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        (
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
        (
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
            "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"
        ),
    ),
}

# Every encoding of a point of order 1, 2, 4 or 8, the non-canonical ones included.
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def signed(message: bytes, seed: bytes = b"k" * 32) -> tuple[bytes, bytes]:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    return private.public_key().public_bytes_raw(), private.sign(message)


@pytest.mark.parametrize("name", VECTORS)
def test_the_rfcs_signatures_hold(name: str) -> None:
    key, message, signature = (bytes.fromhex(part) for part in VECTORS[name])
    assert ed25519.verify(key, signature, message) is True


@pytest.mark.parametrize("name", VECTORS)
def test_the_rfcs_signatures_do_not_hold_for_another_message(name: str) -> None:
    key, message, signature = (bytes.fromhex(part) for part in VECTORS[name])
    assert ed25519.verify(key, signature, message + b"!") is False


@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=300))
def test_what_cryptography_signs_holds(seed: bytes, message: bytes) -> None:
    key, signature = signed(message, seed)
    assert ed25519.verify(key, signature, message) is True


@given(position=st.integers(0, 511), message=st.binary(max_size=40))
def test_one_flipped_bit_of_the_signature_is_refused(position: int, message: bytes) -> None:
    key, signature = signed(message)
    broken = bytearray(signature)
    broken[position // 8] ^= 1 << position % 8
    assert ed25519.verify(key, bytes(broken), message) is False


@given(key=st.binary(min_size=32, max_size=32), signature=st.binary(min_size=64, max_size=64))
def test_random_bytes_never_verify_and_never_raise(key: bytes, signature: bytes) -> None:
    assert ed25519.verify(key, signature, b"message") is False


@pytest.mark.parametrize("encoded", SMALL_ORDER)
def test_a_key_of_small_order_is_refused(encoded: str) -> None:
    with pytest.raises(ed25519.BadKeyError):
        ed25519.require_key(bytes.fromhex(encoded))


@pytest.mark.parametrize("encoded", SMALL_ORDER)
def test_r_of_small_order_is_refused(encoded: str) -> None:
    key, signature = signed(b"m")
    assert ed25519.verify(key, bytes.fromhex(encoded) + signature[32:], b"m") is False


def test_the_identity_as_key_verifies_no_trivial_signature() -> None:
    identity = bytes([1]) + bytes(31)
    trivial = identity + bytes(32)
    # The library accepts it, which is why the rule is ours.
    Ed25519PublicKey.from_public_bytes(identity).verify(trivial, b"anything")
    assert ed25519.verify(identity, trivial, b"anything") is False


def test_s_plus_l_is_refused() -> None:
    key, signature = signed(b"m")
    scalar = int.from_bytes(signature[32:], "little") + L
    malleable = signature[:32] + scalar.to_bytes(32, "little")
    assert ed25519.verify(key, malleable, b"m") is False


@pytest.mark.parametrize("y", [P, P + 1, P + 5, 2**255 - 1])
def test_a_y_of_p_or_more_is_refused(y: int) -> None:
    with pytest.raises(ed25519.BadKeyError):
        ed25519.require_key(y.to_bytes(32, "little"))


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ed25519.BadKeyError):
        ed25519.require_key(b"\x02" * size)


@pytest.mark.parametrize("size", [0, 63, 65])
def test_a_signature_of_another_length_is_refused(size: int) -> None:
    key, signature = signed(b"m")
    assert ed25519.verify(key, (signature + b"0")[:size], b"m") is False


@given(key=st.binary(min_size=32, max_size=32))
def test_no_key_is_accepted_that_cryptography_refuses(key: bytes) -> None:
    try:
        ed25519.require_key(key)
    except ed25519.BadKeyError:
        return
    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(key).verify(bytes(64), b"m")
