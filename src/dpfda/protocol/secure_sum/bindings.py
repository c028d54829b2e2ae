"""What keys, masks and signatures of a round are bound to.

Everything after the first step is bound to the whole list of keys that a site was shown: the masks
of sites that were shown different lists do not cancel, and their signatures do not match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from dpfda.protocol.secure_sum.keys import RoundKey
from dpfda.protocol.secure_sum.messages import KeyOffer, RoundId
from dpfda.protocol.secure_sum.terms import Terms


def offer_content(terms: Terms, offer: KeyOffer) -> bytes:
    """What a site signs when it offers keys."""
    keys = offer.cipher_key, offer.mask_key
    return offer.round.context(terms.digest, "offer", offer.site.encode(), *keys)


def list_digest(terms: Terms, round_id: RoundId, offers: Iterable[KeyOffer]) -> bytes:
    """A fingerprint of all offers, in roster order: what the coordinator signs once a round."""
    ordered = sorted(offers, key=lambda offer: terms.number(offer.site))
    pieces = [
        piece
        for offer in ordered
        for piece in (offer.site.encode(), offer.cipher_key, offer.mask_key, offer.signature)
    ]
    return round_id.context(terms.digest, "offers", *pieces)


def survivors_content(
    purpose: Literal["told", "confirmed"],
    terms: Terms,
    round_id: RoundId,
    offers: bytes,
    survivors: Sequence[str],
) -> bytes:
    """What the coordinator signs when it tells whose vectors arrived, and a site to confirm it."""
    names = [name.encode() for name in survivors]
    return round_id.context(terms.digest, purpose, offers, *names)


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
