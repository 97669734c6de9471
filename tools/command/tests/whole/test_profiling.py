"""tools/course profile from end to end, without and with a GPU. test_profile.py has its pieces."""

import json
import shutil
import sys
import unittest

from testbed import REPOSITORY, Whole

sys.path.insert(0, str(REPOSITORY / "tools"))
from command.profiling.ncu import METRICS

NAME = "01_naive-256x256x256-f32"
# A step's program that counts, without a GPU's caches.
COUNTS = """
import json, sys
name, *given = sys.argv[1:]
def option(name): return given[given.index(name) + 1]
if "--tile" in given and option("--tile") != "swapped":
    sys.exit(2)
m, n, k = map(int, option("--shape").split("x"))
sectors = {"ld": m * n * k // 32 * 5, "st": m * n // 8}
counters = {f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum": each for way, each in sectors.items()}
counters.update({f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum": each for way, each in (("ld", m * n * k // 16), ("st", m * n // 32))})
result = {"tile": "swapped" if "--tile" in given else "coalesced", "in": "f32", "out": "f32", "counters": counters,
    "projection": {"flops_per_second": 6e12}}
with open(option("--json"), "w") as file:
    json.dump({"gpu": {"name": "a model", "multiprocessors": 132, "l2_bytes": 6e7}, "results": [result],
        "ceilings": {"copy_bytes_per_second": 4e12, "fma_f32_flops": 6e13}}, file)
"""


def row(*cells):
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def raw_report():
    """As real ones are imported: what the program prints, a header, units, a launch with commas in its numbers."""
    columns = ("Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
    launch = "void gemm_kernel<Tile<0>, float>(Matrix<const T2>)"
    return (
        "01_naive  m=256 n=256 k=256 f32\n==PROF== Connected to process 7 (01_naive)\n"
        + row("ID", *columns, *METRICS)
        + row("", *["" for _ in columns], *["byte" for _ in METRICS])
        + row("0", "7", "01_naive", "127.0.0.1", launch, "1", "7", "(256, 1, 1)", "(256, 1, 1)", "0", "9.0",
              *[{"op_ld.sum": "2,621,440"}.get(name[-9:], "1,048,576") for name in METRICS])
    )


class Profile(Whole):
    def make_profiler(self):
        """And ncu, which says what the file ncu-says holds, or writes a report."""
        self.put("reports")
        self.steps_are_python(COUNTS)
        self.put("raw.csv", raw_report())
        self.stand_in("ncu", """
[[ $* != *--import* ]] || exec cat "$SCRATCH/raw.csv"
[[ ! -f $SCRATCH/ncu-says ]] || { cat "$SCRATCH/ncu-says"; exit 1; }
while [[ $1 != --export ]]; do shift; done
: >"$2"
""")

    def test_without_a_gpu(self):
        self.put("course/steps/01_naive/gemm.cuh", '// "coalesced" : "swapped"\n')
        self.refused(("no tile of 01_naive has 'nosuch' in its name", "profile 1 --tile nosuch"))
        self.make_profiler()
        self.course("profile 1", code=0,
            err=["no NVIDIA GPU that can be used: measuring needs one, with the CUDA toolkit, 12.8 or newer, and its ncu;",
              f"nothing was recorded of {NAME}"],
            calls=["cmake --build --preset interpreter --target 01_naive_first_f32$",
              "^a_step --shape 256x256x256 --dtype f32 --as h200 --first --profile --force --json "],
            no_calls="^ncu", out=["predicted  interpreted", "- global loads: asked of L1: A warp asks once for what several of its lanes"],
            not_out="measured")
        self.assertIn("asked of L1              134 MB      83.9 MB", self.out)
        recorded = f"docs/results/h200/ncu/{NAME}.csv"
        self.put(f"course/{recorded}", (REPOSITORY / recorded).read_text())
        self.course("profile 01_n", err="and its ncu; measured is what was recorded on NVIDIA H200.",
            out=["predicted  interpreted  measured", recorded, "sectors per request        2.50         2.50      2.50"])
        self.course("profile 1 --tile swapped",
            calls=["cmake --build --preset interpreter --target 01_naive$",
              "^a_step --shape 256x256x256 --dtype f32 --as h200 --tile swapped --profile "],
            out="sectors per request        16.5         2.50      16.5")
        self.course("profile 1 --tile s99", code=2)
        self.course("profile 1 --shape 512x512x512", err="recorded were: --shape 256x256x256.")
        self.course("profile 1 --json --out $S/profiles")
        self.assertEqual(json.loads(self.out)["measured"]["gpu"], "NVIDIA H200")
        self.assertTrue((self.S / f"profiles/{NAME}.json").is_file())

    def test_on_a_gpu(self):
        self.make_profiler()
        self.make_gpu()
        self.remove("bin/ncu")
        self.course("profile 1", err="there is a GPU but no ncu: it comes with the CUDA toolkit", out="predicted  interpreted")
        self.remove("course/build")
        self.refused(("--on gpu: there is a GPU but no ncu", "profile 1 --on gpu"))
        self.make_profiler()
        kept = f"course/build/profiles/{NAME}"
        self.course("profile 1", code=0,
            calls=[f"^ncu --export $S/{kept}.ncu-rep --force-overwrite --metrics .* --profile-from-start off "
              r"--kernel-name regex:\(gemm\|fallback\)_kernel --launch-count 1 --clock-control none "
              "$S/course/build/gpu/bin/01_naive --once --first --shape 256x256x256 --dtype f32$",
              f"^ncu --import $S/{kept}.ncu-rep --csv --page raw --print-units base$"],
            out=["asked of L1                    134 MB      83.9 MB      83.9 MB", f"now: build/profiles/{NAME}.csv", "warps waiting for"])
        self.assertTrue((self.S / f"{kept}.ncu-rep").is_file())
        self.assertEqual([line.split(",")[0] for line in self.text(f"{kept}.csv").splitlines()], ["ID", "0"])
        self.put("ncu-says",
            "==PROF== Connected to process 7 (01_naive)\n\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
              "Performance Counters on the target device 0. For instructions on enabling permissions and to get more information see "
              "https://developer.nvidia.com/ERR_NVGPUCTRPERM\n\n==WARNING== No kernels were profiled.\n")
        why = "may not read this GPU's counters (ERR_NVGPUCTRPERM): run this command as root"
        self.course("profile 1", code=0, err=why, out="predicted  interpreted", not_out="measured")
        self.course("profile 1 --on gpu", code=2)
        self.put("ncu-says", "==ERROR== The application returned an error code (1).\n")
        self.course("profile 1", code=1, err="The application returned an error code (1).")
        self.remove("ncu-says")
        self.put("raw.csv", "==WARNING== nothing\n")
        self.course("profile 1", code=1, err="look at it with 'ncu --import")
        self.course("profile 1 --on interpreter", no_calls="^ncu")

        # The interpreter's libraries are missing, and there is no network.
        self.make_profiler()
        self.put("missing", "-ldw\n")
        self.put("apt-fails")
        shutil.rmtree(self.build / "setup")
        self.course("profile 1", code=0, err=["could not install libdw-dev", "so the interpreter cannot be built: what is measured is shown alone."],
            out="asked of L1                     83.9 MB", not_out="predicted")
        self.course("profile 1 --json", out='"predicted": null')
        self.course("profile 1 --on interpreter", code=1)


if __name__ == "__main__":
    unittest.main()
