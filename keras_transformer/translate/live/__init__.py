"""Simultaneous translation: words of the target are written while the source still arrives.

Names are imported when they are first used: a server imports Keras only if an engine needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_transformer.system.lazy import imported_on_access

if TYPE_CHECKING:
    from keras_transformer.translate.live.live_loop import (
        Commit,
        continue_translation,
        translate_live,
    )
    from keras_transformer.translate.live.policies import (
        AlignAtt,
        LocalAgreement,
        Policy,
        WaitK,
        policy_named,
    )

_HOMES = {
    "AlignAtt": "policies",
    "Commit": "live_loop",
    "LocalAgreement": "policies",
    "Policy": "policies",
    "WaitK": "policies",
    "continue_translation": "live_loop",
    "policy_named": "policies",
    "translate_live": "live_loop",
}

__all__ = [
    "AlignAtt",
    "Commit",
    "LocalAgreement",
    "Policy",
    "WaitK",
    "continue_translation",
    "policy_named",
    "translate_live",
]

__getattr__ = imported_on_access(__name__, _HOMES)
