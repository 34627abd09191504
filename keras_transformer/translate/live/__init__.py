"""Simultaneous translation: words of the target are written while the source still arrives."""

from keras_transformer.translate.live.live_loop import Commit as Commit
from keras_transformer.translate.live.live_loop import translate_live as translate_live
from keras_transformer.translate.live.policies import POLICIES as POLICIES
from keras_transformer.translate.live.policies import AlignAtt as AlignAtt
from keras_transformer.translate.live.policies import LocalAgreement as LocalAgreement
from keras_transformer.translate.live.policies import Policy as Policy
from keras_transformer.translate.live.policies import WaitK as WaitK
from keras_transformer.translate.live.policies import policy_named as policy_named
