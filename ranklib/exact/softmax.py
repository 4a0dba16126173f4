"""What attention differs by from that of a common row, without cancellation; :mod:`ranklib.exact.propagation`
says how. A difference D stands for the matrix w_j D_ij, with log w apart, so that light keys do not underflow.
"""

import torch
from torch import Tensor

from ranklib.exact.scaled import times_power

LARGEST_SCORE = 1e12
LEAST_LOG = -1e15  # stands for the log of weight 0


def softmax_base(key_score: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """log B and log(exp(r_j) / sum over allowed k of exp(r_k)): equal where allowed, the latter for all j."""
    scores = key_score[:, None]
    if mask is None:
        log_base = scores.log_softmax(-1)
        return log_base, log_base
    allowed = scores.masked_fill(~mask, -torch.inf)
    return allowed.log_softmax(-1), scores - allowed.logsumexp(-1, keepdim=True)


def base_difference(log_ratio: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """(D, log w) with B_ij - B_0j = w_j D_ij up to what averages R - 1 c^T to zero; see Masks there."""
    differs = mask ^ mask[:, :1]
    lost = log_ratio.masked_fill(mask | ~differs, -torch.inf).amax(-1, keepdim=True)
    used = torch.where(lost <= 0, differs, mask)
    log_size = log_ratio.masked_fill(~used, -torch.inf)
    log_weights = log_size.amax(1).clamp(min=LEAST_LOG)
    sign = torch.where(mask, 1.0, -1.0).double()
    return sign * (log_size - log_weights[:, None]).exp(), log_weights


def mild_difference(scores: Tensor, e: int, log_base: Tensor) -> tuple[Tensor, Tensor, int]:
    """(D, log w, k) with P_ij - B_ij = 2^k w_j D_ij, P = softmax(2^e scores + log B), |2^e scores| <= 1/2."""
    scores_now, base = times_power(scores, e), log_base.exp()
    if float(scores_now.abs().max()) < 2.0**-60:  # expm1(E) = E, and 1 + S = 1
        difference = scores - (scores * base).sum(-1, keepdim=True)
    else:
        excess = scores * torch.where(scores_now == 0, 1.0, scores_now.expm1() / scores_now)
        total = (excess * base).sum(-1, keepdim=True)
        difference = (excess - total) / (1 + times_power(total, e))
    if log_base.shape[1] == 1:
        return difference, log_base[:, 0], e
    log_weights = log_base.amax(1).clamp(min=LEAST_LOG)
    return difference * (log_base - log_weights[:, None]).exp(), log_weights, e


def large_difference(scores: Tensor, e: int, log_base: Tensor) -> tuple[Tensor, Tensor, int]:
    """The same for scores of any size, in log-space."""
    scores_now = moderate(times_power(scores, e))
    log_sum = (scores_now + log_base).logsumexp(-1, keepdim=True)
    small = scores_now.abs().amax(-1, keepdim=True) <= 0.5
    total = (torch.where(small, scores_now, 0.0).expm1() * log_base.exp()).sum(-1, keepdim=True)
    gain = scores_now - torch.where(small, total.log1p(), log_sum)
    log_joint = gain + log_base
    log_weights = torch.maximum(log_joint.amax(1), log_base.amax(1)).clamp(min=LEAST_LOG)
    base = (log_base - log_weights[:, None]).exp()
    near = base * gain.clamp(-0.5, 0.5).expm1()
    far = (log_joint - log_weights[:, None]).exp() - base
    return torch.where(gain.abs() <= 0.5, near, far), log_weights, 0


def moderate(scores: Tensor) -> Tensor:
    """The scores, refused where their rounding errors would turn softmax into an arbitrary result."""
    if not float(scores.abs().max()) <= LARGEST_SCORE:
        raise ValueError(
            f"state: expected scores up to {LARGEST_SCORE:.0e}, got larger ones, and softmax would turn "
            "their rounding errors into an arbitrary result; scale the weights or the tokens down"
        )
    return scores
