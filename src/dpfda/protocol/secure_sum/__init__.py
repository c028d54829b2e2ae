"""Secure sums: sites add vectors without revealing a single one (Bonawitz et al. 2017).

A round has five steps. Every arrow is a message, which any transport can carry:

    1 advertise   site -> neighbors    fresh, signed X25519 keys
    2 share       site -> each chosen  sealed Shamir shares of its mask key and self-mask seed
    3 mask        site -> aggregator   noisy vector + pairwise masks + self mask, modulo 2^64
    4 confirm     site -> all          a signature on the set of sites whose vector arrived
    5 unmask      site -> aggregator   shares: of the seeds of sites in the set, and of the mask
                                       keys of sites outside of it; never both for one site

The neighbors of a site are all other sites. If there are many sites, they are the sites that it
chose at random and those that chose it (`neighbors`).

Each step occurs once per round. Masks and signatures are bound to the set of sites that shared and
the set that survived, both signed by the coordinator. A coordinator that announces different sets
to different sites learns nothing.

The aggregator learns the sum over the set, or only the reason why there is none. Each site's vector
includes discrete Gaussian noise, drawn once per stage, so that the noise of the honest survivors
suffices.
"""

from dpfda.protocol.secure_sum.aggregator import Aggregator, add_up
from dpfda.protocol.secure_sum.crypto import Identity
from dpfda.protocol.secure_sum.member import Member
from dpfda.protocol.secure_sum.messages import Cheated, RoundFailed, Terms

__all__ = ["Aggregator", "Cheated", "Identity", "Member", "RoundFailed", "Terms", "add_up"]
