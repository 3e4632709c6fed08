"""VAMPIRE (Gururangan, Dang, Card and Smith, 2019): features of a topic model trained on all texts without labels.

A variational autoencoder reads a text as a bag of words. With counts w, fixed background log frequencies b, topics B
and batch normalisation BN:

    h₁, h₂ = layers of the encoder;   z ~ N(μ(h₂), σ²(h₂)),   θ = softmax(z),   η = softmax(BN(b + Bᵀ θ))
    max E Σ_i w_i log η_i - β KL(q(z | w) ‖ N(0, 1)),   β = min(1, epoch / 1000), as in the authors' code

In training, z has dropout of 0.49. Training stops when the coherence of the topics (NPMI on held-out texts) no longer
improves, after 50 epochs there and 30 here, so that β stays small. The classifier then reads
the average of its trained word vectors, and the encoder's fixed states combined with learnt weights:

    r = Σ_k λ_k s_k over s = (h₁, h₂, θ),   λ = softmax of free scalars;   L = mean -log softmax(W [average; r] + b)_y

The method is supervised learning of that model; `--model vampire` uses the model with any other method.

Differs from the official code: layers of the encoder end in softplus, as in the paper; there they are linear.
Differs from the official code: one linear layer after dropout of 0.3; there two, and dropout of word vectors, too.
Differs from paper: the bag has the 10,000 most frequent words that contain a letter and occur in at most a fifth of the
texts.
Differs from paper: each state is standardised over the training texts before it is weighted; otherwise θ is by far the
smallest.
Differs from paper: one size, two layers of 64, instead of a search; at most 1,500 steps of 128 texts.
Differs from paper: a tenth of the training texts is held out. All runs on the same texts have the same encoder.
"""

from drift.methods.method import TEXTS
from drift.methods.supervised import Supervised


class Vampire(Supervised):
    """Supervised learning on features of a topic model. See the module's docstring."""

    name = "vampire"
    summary = "supervised learning on features of a topic model, which is trained on all texts (VAMPIRE)"
    needs = frozenset({TEXTS})
    model = "vampire"
