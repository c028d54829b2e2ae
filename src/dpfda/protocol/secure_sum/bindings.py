"""What keys, masks and signatures of a round are bound to.

Everything after the first step is bound to the whole list of keys that a site was shown: the masks
of sites that were shown different lists do not cancel, and their signatures do not match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpfda.protocol.secure_sum.keys import RoundKey
from dpfda.protocol.secure_sum.messages import KeyOffer, RoundId
from dpfda.protocol.secure_sum.terms import Terms


def offer_content(
    terms: Terms, round_id: RoundId, site: str, cipher_key: bytes, mask_key: bytes
) -> bytes:
    """What a site signs when it offers keys."""
    return round_id.context(terms.digest, "offer", site.encode(), cipher_key, mask_key)


def list_digest(terms: Terms, round_id: RoundId, offers: Iterable[KeyOffer]) -> bytes:
    """A fingerprint of all offers, in roster order: what the coordinator signs once a round."""
    ordered = sorted(offers, key=lambda offer: terms.number(offer.site))
    pieces = [
        piece
        for offer in ordered
        for piece in (offer.site.encode(), offer.cipher_key, offer.mask_key, offer.signature)
    ]
    return round_id.context(terms.digest, "offers", *pieces)


def told_content(terms: Terms, round_id: RoundId, offers: bytes, survivors: Sequence[str]) -> bytes:
    """What the coordinator signs when it tells a site whose vectors arrived."""
    names = [name.encode() for name in survivors]
    return round_id.context(terms.digest, "told", offers, *names)


def confirmed_content(
    terms: Terms, round_id: RoundId, offers: bytes, survivors: Sequence[str]
) -> bytes:
    """What a site signs when it confirms that set."""
    names = [name.encode() for name in survivors]
    return round_id.context(terms.digest, "confirmed", offers, *names)


def share_context(terms: Terms, round_id: RoundId, sender: str, recipient: str) -> bytes:
    """What the key of one sealed share is derived for.

    The list of keys is sealed inside instead: a recipient who was shown another one can then open
    the message and see who signed which list.
    """
    return round_id.context(terms.digest, "share", sender.encode(), recipient.encode())


def pair_seed(
    terms: Terms, round_id: RoundId, offers: bytes, key: RoundKey, *, owner: str, other: KeyOffer
) -> bytes:
    """The seed of the mask that two sites share."""
    pair = sorted((owner, other.site), key=terms.number)
    names = [name.encode() for name in pair]
    return key.agree(other.mask_key, round_id.context(terms.digest, "mask", offers, *names))
