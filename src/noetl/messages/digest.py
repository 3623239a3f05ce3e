"""The SHA-256 of something short, without OpenSSL, which takes milliseconds to load."""

try:  # Python's own, as `random` takes it
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:  # before Python 3.12
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:  # a Python that was built without it
        from hashlib import sha256


def digest_of_short(data: bytes) -> str:
    """For a document or a key; what may be long is hashed by `hashlib`, which is quicker then."""
    digest: str = sha256(data).hexdigest()
    return digest
