"""Sites add up whole vectors without showing anybody a single one (Bonawitz et al. 2017).

A round in five steps; every arrow is a message, and who carries it is not decided here:

    1 advertise   site -> all          fresh, signed X25519 keys
    2 share       site -> each site    sealed Shamir shares of its mask key and self-mask seed
    3 mask        site -> aggregator   noisy vector + pairwise masks + self mask, modulo 2^64
    4 confirm     site -> all          a signature on the set of sites whose vector arrived
    5 unmask      site -> aggregator   shares: of the seed of those who are in the set, of the
                                       mask key of those who are not, never both

The aggregator learns the sum over the set, or nothing and why. Each site's vector carries its own
discrete-Gaussian noise, drawn once per stage, so that the honest survivors' noise alone is enough.
"""

from dpfda.protocol.secure_sum.aggregator import Aggregator
from dpfda.protocol.secure_sum.keys import Identity
from dpfda.protocol.secure_sum.messages import (
    Confirmation,
    KeyOffer,
    MaskedVector,
    RoundFailed,
    RoundId,
    SealedShares,
    Unmasking,
)
from dpfda.protocol.secure_sum.session import add_up
from dpfda.protocol.secure_sum.site import Site
from dpfda.protocol.secure_sum.terms import Terms

__all__ = [
    "Aggregator",
    "Confirmation",
    "Identity",
    "KeyOffer",
    "MaskedVector",
    "RoundFailed",
    "RoundId",
    "SealedShares",
    "Site",
    "Terms",
    "Unmasking",
    "add_up",
]
