"""Shapes of problems: what they are called, and which belong together. The one place that plots and tables take this from."""

import math

from . import results

# Multiplications in transformers, in the order in which they are shown: (m, n, k, layout), and what they do there.
NAMED = {
    (1, 4096, 4096, "nn"): "decode",
    (8, 4096, 4096, "nn"): "decode",
    (16, 4096, 4096, "nn"): "decode",
    (64, 4096, 4096, "nn"): "decode",
    (2048, 3072, 768, "nn"): "BERT feed-forward",
    (4096, 11008, 4096, "nn"): "Llama up",
    (4096, 4096, 11008, "nn"): "Llama down",
    (2048, 2048, 128, "nt"): "attention Q·Kᵀ",
}
SMALL = 1024  # up to this size, a square does not fill a large GPU
SWEEP_FROM = 4  # so many m with the same n and k are a sweep; fewer are shapes of their own


def of(result):
    return result["m"], result["n"], result["k"]


def key(result):
    return (*of(result), result["layout"])


def is_square(result):
    return result["m"] == result["n"] == result["k"] > 0


def dimensions(result):
    return "×".join(map(str, of(result)))


def name(result):
    """'Llama up 4096×11008×4096', 'attention Q·Kᵀ 2048×2048×128 (nt)', '300×200×100'."""
    words = [NAMED.get(key(result)), dimensions(result), None if result["layout"] == "nn" else f"({result['layout']})"]
    return " ".join(filter(None, words))


def squares(group):
    """From each size with m = n = k to its results, in the order of the sizes."""
    return dict(sorted(results.grouped(filter(is_square, group), lambda each: each["m"]).items()))


def sweep(group):
    """From each m to its results: those with the n, k and layout that have most m; {} if none has SWEEP_FROM of them.

    What has a name is no part of it: decoding has the same n and k as a sweep up to 4096 rows, but is another question.
    """
    candidates = [each for each in group if key(each) not in NAMED and math.prod(of(each)) > 0]
    families = results.grouped(candidates, lambda each: key(each)[1:])
    by_rows = [results.grouped(family, lambda each: each["m"]) for family in families.values()]
    best = max(by_rows, key=len, default={})
    return dict(sorted(best.items())) if len(best) >= SWEEP_FROM else {}


def others(group):
    """From each key to its results: neither square nor of the sweep. Those with a name come first, in NAMED's order."""
    swept = {key(each) for of_rows in sweep(group).values() for each in of_rows}
    found = results.grouped((each for each in group if not is_square(each) and key(each) not in swept), key)
    ranks = {shape: rank for rank, shape in enumerate(NAMED)}
    order = sorted(found, key=lambda shape: (ranks.get(shape, len(ranks)), math.prod(shape[:3]), shape))
    return {shape: found[shape] for shape in order if math.prod(shape[:3]) > 0}
