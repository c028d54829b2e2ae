"""Sites add vectors without revealing a single one (Bonawitz et al. 2017).

A round in five steps; every arrow is a message, and who carries it is not decided here:

    1 advertise   site -> neighbors    fresh, signed X25519 keys
    2 share       site -> each chosen  sealed Shamir shares of its mask key and self-mask seed
    3 mask        site -> aggregator   noisy vector + pairwise masks + self mask, modulo 2^64
    4 confirm     site -> all          a signature on the set of sites whose vector arrived
    5 unmask      site -> aggregator   shares: of the seed of those who are in the set, of the
                                       mask key of those who are not, never both

Neighbors are all other sites, or, among many, those of each site's own random choice and those that
chose it (`neighbors`).

Each step comes once a round. Masks and signatures are bound to the sets of sites that shared and
that survived, which the coordinator signs, so that one who tells two sites two things learns
nothing.

The aggregator learns the sum over the set, or nothing and why. Each site's vector carries its own
discrete-Gaussian noise, drawn once per stage, so that the honest survivors' noise alone is enough.
"""

from dpfda.protocol.secure_sum.aggregator import Aggregator, add_up
from dpfda.protocol.secure_sum.crypto import Identity
from dpfda.protocol.secure_sum.member import Member
from dpfda.protocol.secure_sum.messages import Cheated, RoundFailed, Terms

__all__ = ["Aggregator", "Cheated", "Identity", "Member", "RoundFailed", "Terms", "add_up"]
