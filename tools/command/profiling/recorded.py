"""What ncu has counted before: the tables that lie in docs/results/<gpu>/."""

import collections
import glob
import json
import os
import re
import statistics

from ..places import ROOT
from . import ncu

RESULTS = os.path.join(ROOT, "docs", "results")
# Folders, the first of which is complete where it has the launch; the others have parts of what ncu counts.
WHOLE, PARTS = "profile", ("ncu", "ncu-caches", "ncu-limits", "l2")
MAPPINGS = ("coalesced", "swapped")  # 01's tiles are numbered in ncu's names of kernels


def gpus():
    """The folders, by name."""
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(glob.escape(RESULTS), "*")) if os.path.isdir(path))


def files(gpu, subject):
    """Those that may have SUBJECT's launch, best first."""
    whole = os.path.join(RESULTS, gpu, WHOLE, f"{subject.name}.csv")
    if os.path.isfile(whole):
        return [whole]
    parts = [os.path.join(RESULTS, gpu, folder, f"{name}.csv") for folder, name in subject.recorded_in(PARTS)]
    return [path for path in parts if os.path.isfile(path)]


def is_of_tile(kernel, tile):
    """Whether KERNEL, as ncu names it, is the TILE's: Tile<128, 128, 64, 64, 64, 3> is 128x128x64 warp 64x64 s3. The kernel that all
    steps share has no tile in its name."""
    if "fallback_kernel<" in kernel or (tile or "").endswith("fallback"):
        return "fallback_kernel<" in kernel and (tile or "").endswith("fallback")
    found = re.search(r"\bTile<([0-9, ]+)>", kernel)
    numbers = found[1].split(", ") if found else []
    wanted = [str(MAPPINGS.index(tile))] if tile in MAPPINGS else re.findall(r"\d+", tile or "")
    # 09's and 10's tiles have a panel's depth and a fixed part for each warp: Tile<128, 256, 4, 8> is 128x256x64 s4 g8.
    of_panels = wanted[:2] + re.findall(r" [sg](\d+)", tile or "")
    return any(each and numbers[: len(each)] == each for each in (wanted, of_panels if len(numbers) < 5 else []))


def find(subject, tile):
    """The measured column of the profile, as profile_table.py wants it; None where nothing was recorded."""
    for gpu in gpus():
        counters, used, kernel = {}, [], None
        for path in files(gpu, subject):
            launches = [(name, counted) for name, counted in ncu.rows(path) if subject.is_launch(name) and is_of_tile(name, tile)]
            if not launches:
                continue
            kernel = launches[0][0]
            counters.update({**mean(counted for _, counted in launches), **counters})
            used.append(os.path.relpath(path, ROOT))
        if counters:
            of_ladder = launch_of_ladder(gpu, subject, tile)
            if of_ladder:
                counters.update({**of_ladder, **counters})
                used.append(os.path.relpath(ladder(gpu, subject), ROOT))
            return {"gpu": f"NVIDIA {gpu.upper()}", "is_recorded": True, "files": used, "kernel": kernel, "counters": counters}
    return None


def ladder(gpu, subject):
    return os.path.join(RESULTS, gpu, f"ladder-{subject.dtype}.json")


def launch_of_ladder(gpu, subject, tile):
    """What a ladder says of the launch under ncu's names, where it has the same shape: registers, blocks, and how many fit."""
    try:
        with open(ladder(gpu, subject), encoding="utf-8") as file:
            document = json.load(file)
        is_launch = {"step": subject.step, "tile": tile, **dict(zip("mnk", subject.extents))}
        found = next(each for each in document["results"] if all(each[name] == value for name, value in is_launch.items()))
        launch, multiprocessors = found["launch"], document["gpu"]["multiprocessors"]
    except (OSError, AttributeError, KeyError, StopIteration):  # of an exercise, none has any
        return {}
    return {
        "launch__registers_per_thread": launch["registers"],
        "launch__grid_size": launch["blocks"],
        "launch__block_size": launch["threads"],
        "launch__waves_per_multiprocessor": launch["blocks"] / launch["blocks_per_sm"] / multiprocessors,
    }


def mean(launches):
    """Several launches of one tile differ by some per cent."""
    values = collections.defaultdict(list)
    for counted in launches:
        for name, value in counted.items():
            values[name].append(value)
    return {name: statistics.fmean(each) for name, each in values.items()}


def shapes(subject):
    """Those of which something was recorded, as text."""
    found = set()
    for folder, name in [(WHOLE, subject.name), *subject.recorded_in(PARTS)]:
        pattern = os.path.join(glob.escape(RESULTS), "*", folder, name.replace(subject.shape, "*") + ".csv")
        found |= {match[0] for match in (re.search(r"\d+x\d+x\d+", os.path.basename(path)) for path in glob.glob(pattern)) if match}
    return sorted(found, key=lambda shape: [int(extent) for extent in shape.split("x")])
