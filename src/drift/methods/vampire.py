"""VAMPIRE (Gururangan, Dang, Card and Smith, 2019): features of a topic model that all texts trained, without labels.

A variational autoencoder reads a text as a bag of words. With counts w, background log frequencies b, which are fixed,
topics B and batch normalisation BN:

    h₁, h₂ = layers of the encoder;   z ~ N(μ(h₂), σ²(h₂)),   θ = softmax(z),   η = softmax(BN(b + Bᵀ θ))
    max E Σ_i w_i log η_i - β KL(q(z | w) ‖ N(0, 1)),   β from 0 to 1

It stops when the topics' coherence (NPMI on held-out texts) no longer improves. The classifier then reads, beside the
average of word vectors that it trains, the encoder's fixed states with weights it learns:

    r = Σ_k λ_k s_k over s = (h₁, h₂, θ),   λ = softmax of free scalars;   L = mean -log softmax(W [average; r] + b)_y

The method is supervised learning of that model; `--model vampire` gives it to any other method.

Differs from paper: a bag has the 10,000 most frequent words that have a letter and are in at most a fifth of the texts.
Differs from paper: each state is standardised over the training texts before it is weighed; θ is else far the smallest.
Differs from paper: one size, two layers of 64, in place of a search; at most 1,500 steps of 128 texts.
Differs from paper: held-out texts are a tenth of the training texts. Every run on the same texts has the same encoder.
"""

from drift.methods.supervised import Supervised


class Vampire(Supervised):
    """See the module."""

    name = "vampire"
    summary = "the labelled rows alone, on features of a topic model that all texts trained (VAMPIRE)"
    tasks = ("text",)
    model = "vampire"
