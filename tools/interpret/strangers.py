"""Programs of strangers for samples.py: where they come from, what makes them small, how they end on the interpreter, and why.

What is edited is a copy: sizes, how often a main repeats, and what it compares with. Kernels stay as they are.
"""

import dataclasses
import glob
import os
import re
import shutil
import signal

RIGHT, FAULT, SOMETIMES, OWN, REFUSED, WAIVED, BROKEN = "verified", "fault", "fault in some runs", "own check fails", "refused", "ends by itself", "does not compile"
CODES = {RIGHT: (0,), FAULT: (1,), SOMETIMES: (0, 1), OWN: (1, 3, -signal.SIGABRT), REFUSED: (2,), WAIVED: (2,), BROKEN: (1,)}


@dataclasses.dataclass
class Program:
    """`says`: a piece of what it prints, of one with a fault in some runs in those; `why`: what the fault is, or what it lacks."""

    name: str
    file: str  # in the repository
    arguments: tuple = ()
    options: tuple = ()  # of tools/course interpret
    result: str = RIGHT
    says: str = ""
    why: str = ""


@dataclasses.dataclass
class Repository:
    """`edits`: triples of files, a pattern, and what comes in its place; `behind`: only behind this text."""

    url: str
    commit: str
    programs: list
    edits: tuple = ()
    behind: str = ""
    more: dict = dataclasses.field(default_factory=dict)  # files that are written beside: name -> (file it is made of, edits)

    def prepare(self, folder, copy):
        """Makes `copy` of `folder`, edited. Raises ValueError where an edit finds nothing."""
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        for pattern, old, new in self.edits:
            changed = [_edit(path, path, ((old, new),), self.behind) for path in glob.glob(os.path.join(copy, pattern), recursive=True)]
            if not any(changed):
                raise ValueError(f"{pattern} has no {old}")
        for name, (source, edits) in self.more.items():
            for edit in edits:  # one by one, so that each finds something
                path = os.path.join(copy, name)
                if not _edit(path if edit is not edits[0] else os.path.join(copy, source), path, (edit,), ""):
                    raise ValueError(f"{source} has no {edit[0]}")


def _edit(path, to, edits, behind):
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        text = stream.read()
    at = text.find(behind)
    new = text[at:]
    for old, replacement in edits:
        new = re.sub(old, replacement, new, flags=re.DOTALL)
    with open(to, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text[:at] + new)
    return new != text[at:]


_NO_FENCE = "no fence between mbarrier.init and the copies that use it"
_NO_FENCE_SAID = "with no fence.mbarrier_init between"


def _fast():
    small, large = ("256", "256", "256"), ("2048", "2048", "128")
    for k in range(2, 13):
        more = {8: "; a block may end before its cluster's last arrival there", 9: "; a block may end before its cluster's last arrival there"}
        more |= dict.fromkeys((10, 11, 12), "; none before the bulk store, which no thread waits for")
        how = {"result": FAULT, "says": _NO_FENCE_SAID, "why": _NO_FENCE + more.get(k, "")} if k > 6 else {"says": "KERNEL"}
        yield Program(f"matmul_{k}", "matmul.cu", (str(k), *(small if k < 6 else large)), ("-D", "NDEBUG"), **how)


def _hopper():
    include = ("-I", "../include", "-I", "{cutlass}/include", "-I", "{cutlass}/tools/util/include")
    for name in _HOPPER:
        how = {"result": FAULT, "says": _NO_FENCE_SAID, "why": _NO_FENCE} if name == "00" else {"says": "custom gemm kernel performance"}
        yield Program(f"cutlass_cute_hopper_{_HOPPER[name][0]}", f"src/small_{name}.cu", (), include, **how)


# By what they are called here: file, namespace and function, m = n, k.
_HOPPER = {
    "00": ("00_wgmma_tma", "gemm_hopper_v00::launch_cute_hopper_gemm_kernel_v00", 512, 256),
    "01": ("01_pipeline", "gemm_hopper_v01::launch_cute_hopper_gemm_kernel_v01", 512, 256),
    "02": ("02_pipeline_epilogue", "gemm_hopper_v02::launch_cute_hopper_gemm_kernel_v02", 512, 256),
    "03": ("03_persistent_cooperative", "gemm_hopper_v03::launch_cute_hopper_gemm_kernel_v03", 2048, 128),
    "03n": ("03_persistent_cooperative_no_epilogue", "gemm_hopper_v03_no_epilogue::launch_cute_hopper_gemm_kernel_v03_no_epilogue", 2048, 128),
    "04": ("04_persistent_cooperative_mcast", "gemm_hopper_v04::launch_cute_hopper_gemm_kernel_v04", 2048, 128),
}


def _small_hopper(file, function, size, k):
    return (
        "src/profile_cuda_gemm_fp16.cu",
        (
            (r"#include <iostream>", f'#include <vector>\n#include <iostream>\n#include "cutlass_cute_hopper_{file}.cu"\n#include "profile_utils.cu"\n#include "cuda_utils.cu"'),
            (r"const gemm_kernel_launch_functions \{.*?\n\s*\};", f'const gemm_kernel_launch_functions {{ {{"{file}", {function}<cute::half_t>}} }};'),
            (r"([mn])\{8192U\}", rf"\g<1>{{{size}U}}"),
            (r"k\{8192U\}", f"k{{{k}U}}"),
            (r"num_repeats\{1U\}", "num_repeats{0U}"),
            (r"num_warmups\{2U\}", "num_warmups{0U}"),
        ),
    )


def _kittens():
    options = ("-D", "NDEBUG", "-D", "KITTENS_HOPPER", "-I", "../../../include", "-I", "../../../prototype")
    for level, how in {
        "04": {"says": "Error count: 0"},
        "05": {"result": OWN, "says": "Error count: 65536", "why": "sums begin in registers that nobody has set"},
        "06": {"result": FAULT, "says": _NO_FENCE_SAID, "why": _NO_FENCE + "; sums begin in registers that nobody has set"},
        "07": {"result": FAULT, "says": _NO_FENCE_SAID, "why": _NO_FENCE},
        "08": {"result": FAULT, "says": _NO_FENCE_SAID, "why": _NO_FENCE + "; each lane stores the whole tile"},
    }.items():
        yield Program(f"educational_h100/level_{level}", f"kernels/gemm/educational_h100/level_{level}.cu", (), options, **how)


def _sgemm():
    for k in range(13):
        fault = {"result": FAULT, "says": "all threads of the block reach the same __syncthreads()", "why": "the halves of a block wait at barriers in other branches"}
        yield Program(f"kernel {k}", "sgemm.cu", (str(k),), ("-I", "src"), **(fault if k == 11 else {"says": "size: (256)"}))


# By file: its kernels; those with faults are below.
_LLM = {
    "adamw": (1, 2),
    "attention_backward": range(1, 9),
    "attention_forward": range(1, 7),
    "classifier_fused": range(1, 6),
    "crossentropy_forward": (1,),
    "crossentropy_softmax_backward": (1,),
    "encoder_backward": (1, 2),
    "encoder_forward": (1, 2, 3),
    "fused_residual_forward": range(1, 7),
    "gelu_backward": (1, 2),
    "gelu_forward": (1, 2),
    "global_norm": range(1, 5),
    "layernorm_backward": range(2, 11),  # the first one is for floats
    "layernorm_forward": range(1, 7),
    "matmul_backward": (1,),
    "matmul_backward_bias": (1, 2, 3, 4, 7, 8, 9),  # the fifth is for floats
    "matmul_forward": range(1, 5),
    "permute": (1,),
    "residual_forward": (1, 2),
    "softmax_forward": range(1, 9),
    "trimat_forward": range(5),
}
_LLM_FAULTS = {
    "attention_backward 1": (FAULT, "race on d_dpreatt", "each block of a column computes the same, for the kernel does not look at blockIdx.y"),
    "attention_backward 6": (FAULT, "uninitialised bytes of d_att", "reads above the diagonal, where nobody has written, and does not use it"),
    "attention_backward 7": (FAULT, "race on block_acc", "no barrier between the first warp's zeros and the warps' sums"),
    "attention_backward 8": (FAULT, "race on block_acc", "no barrier between the first warp's zeros and the warps' sums"),
    "attention_forward 2": (FAULT, "uninitialised bytes of d_out", "reads the result before it is written, to multiply it by 0: a NaN stays one"),
    "fused_residual_forward 2": (FAULT, "out of bounds: d_inp1", "idx > N, for idx >= N"),
    "layernorm_backward 7": (SOMETIMES, "race on d_scratch", "no __threadfence() before the counter that says which block is the last"),
    "layernorm_backward 6": (SOMETIMES, "race on d_scratch", "no __threadfence() before the counter that says which block is the last"),
    "layernorm_backward 9": (FAULT, "race on d_scratch", "no __threadfence() before the counter that says which block is the last"),
    "layernorm_backward 10": (FAULT, "out of bounds: dynamic shared memory", "blocks of 32 threads have no room for the flag behind the sums"),
    "matmul_backward_bias 8": (FAULT, "__shfl_down_sync by lane", "blocks of 32 threads: lanes of the mask that are not in the loop"),
    "matmul_backward_bias 9": (FAULT, "__shfl_down_sync by lane", "blocks of 32 threads: lanes of the mask that are not in the loop"),
    "softmax_forward 4": (FAULT, "race on dynamic shared memory", "no barrier between the maximum's readers and the sum that takes its place"),
    "softmax_forward 7": (FAULT, "race on d_out", "reads the last element again and again, while its owner writes it, and does not use it"),
    "global_norm 4": (OWN, "assertion failed: grid_size < 1024", "an assertion of its own, which does not hold on 132 SMs"),
}


def _llm():
    for file, kernels in _LLM.items():
        for k in kernels:
            result, says, why = _LLM_FAULTS.get(f"{file} {k}", (RIGHT, "", ""))
            yield Program(f"{file} {k}", f"dev/cuda/{file}.cu", (str(k),), (), result, says, why)


# NVIDIA's samples of one file: arguments, or how else they end.
_SAMPLES = {
    "0_Introduction/UnifiedMemoryStreams": (),
    "0_Introduction/asyncAPI": (),
    "0_Introduction/clock": (),
    "0_Introduction/cudaOpenMP": (),
    "0_Introduction/fp16ScalarProduct": (),
    "0_Introduction/matrixMul": ("-wA=64", "-hA=64", "-wB=64", "-hB=64"),
    "0_Introduction/simpleAWBarrier": (),
    "0_Introduction/simpleAssert": (),
    "0_Introduction/simpleAttributes": (FAULT, "race on hit", "a plain look at a counter that others change by atomics"),
    "0_Introduction/simpleCooperativeGroups": (),
    "0_Introduction/simpleCubemapTexture": (REFUSED, "textures", "textures"),
    "0_Introduction/simpleHyperQ": (),
    "0_Introduction/simpleIPC": (REFUSED, "memory shared between processes", "memory of another process"),
    "0_Introduction/simpleLayeredTexture": (REFUSED, "textures", "textures"),
    "0_Introduction/simpleMultiCopy": (),
    "0_Introduction/simpleMultiGPU": (),
    "0_Introduction/simpleOccupancy": (),
    "0_Introduction/simpleP2P": (WAIVED, "Waiving test", "one device"),
    "0_Introduction/simplePitchLinearTexture": (REFUSED, "textures", "textures"),
    "0_Introduction/simplePrintf": (),
    "0_Introduction/simpleStreams": ("--use_cuda_malloc_host",),
    "0_Introduction/simpleSurfaceWrite": (REFUSED, "textures", "textures"),
    "0_Introduction/simpleTemplates": (),
    "0_Introduction/simpleTexture": (REFUSED, "textures", "textures"),
    "0_Introduction/simpleVoteIntrinsics": (),
    "0_Introduction/simpleZeroCopy": (),
    "0_Introduction/systemWideAtomics": (),
    "0_Introduction/vectorAdd": (),
    "1_Utilities/topologyQuery": (),
    "2_Concepts_and_Techniques/inlinePTX": (),
    "2_Concepts_and_Techniques/interval": (BROKEN, "boost/config/posix_features.hpp", "a header of boost is missing in the repository"),
    "2_Concepts_and_Techniques/radixSortThrust": ("-n=20000", "-iterations=2"),
    "2_Concepts_and_Techniques/reductionMultiBlockCG": ("-n=100000",),
    "2_Concepts_and_Techniques/segmentationTreeThrust/segmentationTree": (REFUSED, "the library thrust", "thrust's algorithms"),
    "2_Concepts_and_Techniques/shfl_scan": (FAULT, "before it is read", "reads shared memory that it has not written, and does not use it"),
    "2_Concepts_and_Techniques/streamOrderedAllocation": (),
    "2_Concepts_and_Techniques/streamOrderedAllocationIPC": (REFUSED, "cudaMemPoolE", "memory of another process"),
    "2_Concepts_and_Techniques/streamOrderedAllocationP2P": (WAIVED, "Waiving the sample", "one device"),
    "2_Concepts_and_Techniques/threadFenceReduction": (),
    "3_CUDA_Features/StreamPriorities": (),
    "3_CUDA_Features/bf16TensorCoreGemm": (),
    "3_CUDA_Features/binaryPartitionCG": (),
    "3_CUDA_Features/cdpBezierTessellation/BezierLineCDP": (REFUSED, "dynamic parallelism", "launches in device code"),
    "3_CUDA_Features/cdpQuadtree": (REFUSED, "the library thrust", "thrust's algorithms, launches in device code"),
    "3_CUDA_Features/cdpSimplePrint": (REFUSED, "dynamic parallelism", "launches in device code"),
    "3_CUDA_Features/cdpSimpleQuicksort": (REFUSED, "dynamic parallelism", "launches in device code"),
    "3_CUDA_Features/cudaTensorCoreGemm": (),
    "3_CUDA_Features/dmmaTensorCoreGemm": (),
    "3_CUDA_Features/globalToShmemAsyncCopy": ("-wA=128", "-hA=128", "-wB=128", "-hB=128", "-kernel=1"),
    "3_CUDA_Features/graphConditionalNodes": (REFUSED, "conditions in CUDA graphs", "conditions in graphs"),
    "3_CUDA_Features/graphMemoryFootprint": (),
    "3_CUDA_Features/graphMemoryNodes": (),
    "3_CUDA_Features/immaTensorCoreGemm": (),
    "3_CUDA_Features/newdelete": (FAULT, "race on", "a plain look at a counter that others change by atomics"),
    "3_CUDA_Features/simpleCudaGraphs": (),
    "3_CUDA_Features/tf32TensorCoreGemm": (),
    "3_CUDA_Features/warpAggregatedAtomicsCG": (),
    "4_CUDA_Libraries/conjugateGradientCudaGraphs": (REFUSED, "the library cuSPARSE", "cuSPARSE"),
    "4_CUDA_Libraries/conjugateGradientMultiBlockCG": (),
    "4_CUDA_Libraries/conjugateGradientMultiDeviceCG": (WAIVED, "Waiving", "one device"),
    "4_CUDA_Libraries/lineOfSight": (REFUSED, "the library thrust", "thrust's algorithms, textures"),
    "4_CUDA_Libraries/simpleCUFFT": (REFUSED, "the library cuFFT", "cuFFT"),
    "4_CUDA_Libraries/simpleCUFFT_2d_MGPU": (REFUSED, "the library cuFFT", "cuFFT"),
    "4_CUDA_Libraries/simpleCUFFT_MGPU": (REFUSED, "the library cuFFT", "cuFFT"),
    "4_CUDA_Libraries/simpleCUFFT_callback": (REFUSED, "the library cuFFT", "cuFFT"),
    "5_Domain_Specific/dwtHaar1D": (),
    "5_Domain_Specific/dxtc": (FAULT, "race on sums", "lanes read what others change in the same step, without a __syncwarp() between"),
    "5_Domain_Specific/p2pBandwidthLatencyTest": (),
    "5_Domain_Specific/simpleGL": (REFUSED, "graphics", "graphics"),
    "5_Domain_Specific/stereoDisparity": (REFUSED, "textures", "textures"),
    "5_Domain_Specific/vulkanImageCUDA": (REFUSED, "graphics", "graphics"),
    "6_Performance/LargeKernelParameter": (),
    "6_Performance/alignedTypes": (),
    "6_Performance/cudaGraphsPerfScaling/cudaGraphPerfScaling": (),
    "6_Performance/transpose": ("-dimX=64", "-dimY=64"),
}


def _samples():
    for name, how in _SAMPLES.items():
        chapter, sample, *file = name.split("/")
        path = f"Samples/{chapter}/{sample}/{file[0] if file else sample}.cu"
        is_other = how and how[0] in CODES
        yield Program(f"{chapter}/{sample}", path, () if is_other else how, ("-I", "../../../Common"), *(how if is_other else ()))


def _tiles(name, count):
    path = f"Samples/3_CUDA_Features/{name}TensorCoreGemm/{name}TensorCoreGemm.cu"
    yield path, r"#define ([MNK])_TILES \d+", rf"#define \1_TILES {count}"
    yield path, r"#define CPU_DEBUG 0", "#define CPU_DEBUG 1"


# LeetCUDA's files of matrix multiplication. Those that have a main of their own, and how it ends; and the functions that they give to
# PyTorch, which the main of a stand-in for its header calls.
_LEET_MAINS = {
    "hgemm/cutlass/hgemm_mma_stage_tn_cute": (FAULT, "race on dynamic shared memory", "its last step reads the next stage, and does not use it, while other warps store C there"),
    "hgemm/mma/basic/hgemm_mma_stage": (),
    "hgemm/mma/basic/hgemm_mma_stage_tn": (),
    "hgemm/mma/swizzle/hgemm_mma_stage_swizzle": (),
    "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle": (),
    "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle_x2": (),
    "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle_x4": (),
    "nvidia-nsight/elementwise": (),
    "nvidia-nsight/relu": (),
    "swizzle/hgemm_mma_swizzle": (),
    "swizzle/mat_trans_swizzle": (),
    "swizzle/mma_simple_swizzle": (),
}
_LEET_FUNCTIONS = {
    "sgemm/sgemm": "naive_f32 sliced_k_f32 t_8x8_sliced_k_f32x4 t_8x8_sliced_k_f32x4_bcf t_8x8_sliced_k_f32x4_bcf_offset "
    "t_8x8_sliced_k_f32x4_bcf_dbuf t_8x8_sliced_k_f32x4_bcf_dbuf_offset",
    "sgemm/sgemm_async": "t_8x4_sliced_k16_f32x4_bcf_dbuf t_8x4_sliced_k16_f32x4_bcf_dbuf_async t_8x8_sliced_k16_f32x4_bcf_dbuf "
    "t_8x8_sliced_k16_f32x4_bcf_dbuf_async t_8x16_sliced_k16_f32x4_bcf_dbuf t_8x16_sliced_k16_f32x4_bcf_dbuf_async",
    "sgemm/sgemm_cublas": "cublas cublas_tf32",
    "sgemm/sgemm_wmma_tf32_stage": "wmma_m16n16k8_mma4x2_warp2x4_stages wmma_m16n16k8_mma4x2_warp2x4_stages_dsmem",
    "hgemm/cublas/hgemm_cublas": "cublas_tensor_op_nn cublas_tensor_op_tn",
    "hgemm/naive/hgemm": "naive_f16 sliced_k_f16 t_8x8_sliced_k_f16x4 t_8x8_sliced_k_f16x4_pack t_8x8_sliced_k_f16x4_bcf "
    "t_8x8_sliced_k_f16x4_pack_bcf t_8x8_sliced_k_f16x8_pack_bcf t_8x8_sliced_k_f16x8_pack_bcf_dbuf",
    "hgemm/naive/hgemm_async": "t_8x8_sliced_k16_f16x8_pack_dbuf t_8x8_sliced_k16_f16x8_pack_dbuf_async t_8x8_sliced_k32_f16x8_pack_dbuf "
    "t_8x8_sliced_k32_f16x8_pack_dbuf_async t_16x8_sliced_k32_f16x8_pack_dbuf t_16x8_sliced_k32_f16x8_pack_dbuf_async",
    "hgemm/wmma/hgemm_wmma": "wmma_m16n16k16_naive wmma_m16n16k16_mma4x2 wmma_m16n16k16_mma4x2_warp2x4 "
    "wmma_m16n16k16_mma4x2_warp2x4_dbuf_async wmma_m32n8k16_mma2x4_warp2x4_dbuf_async",
    "hgemm/wmma/hgemm_wmma_stage": "wmma_m16n16k16_mma4x2_warp2x4_stages wmma_m16n16k16_mma4x2_warp2x4_stages_dsmem "
    "wmma_m16n16k16_mma4x4_warp4x4_stages_dsmem wmma_m16n16k16_mma4x2_warp4x4_stages_dsmem",
    "hgemm/mma/basic/hgemm_mma": "mma_m16n8k16_naive mma_m16n8k16_mma2x4_warp4x4",
    "hgemm/mma/basic/hgemm_mma_stage": "mma_m16n8k16_mma2x4_warp4x4_stages mma_m16n8k16_mma2x4_warp4x4_stages_dsmem "
    "mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_x4 mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_rr",
    "hgemm/mma/basic/hgemm_mma_stage_tn": "mma_m16n8k16_mma2x4_warp4x4_stages_dsmem_tn",
    "hgemm/mma/swizzle/hgemm_mma_stage_swizzle": "mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_swizzle",
    "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle": "mma_m16n8k16_mma2x4_warp4x4_stages_dsmem_tn_swizzle",
    "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle_x2": "mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_tn_swizzle_x4",
    "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle_x4": "mma_m16n8k16_mma2x4_warp4x4x2_stages_dsmem_tn_swizzle_x4",
}


def _leet():
    include = ("-I", "{stranger}/kernels/hgemm/utils", "-I", "{cutlass}/include", "-I", "{cutlass}/tools/util/include")
    for name, how in _LEET_MAINS.items():
        arguments = ("256", "256", "64", "0", "1") if name == "swizzle/hgemm_mma_swizzle" else ("64", "64") if name == "swizzle/mat_trans_swizzle" else ()
        yield Program(name, f"kernels/{name}.cu", arguments, include, *how)
    for name in _LEET_FUNCTIONS:
        options = ("-I", "{stand_ins}", *(word for which in ("MMA", "CUBLAS") for word in ("-D", f"NO_{which}_HGEMM_BIN")))
        how = {"says": "all right"}
        if name == "hgemm/mma/swizzle/hgemm_mma_stage_tn_swizzle_x2":
            how = {"result": OWN, "says": "see cudaFuncSetAttribute", "why": "lets another kernel have more shared memory than the one that it launches"}
        yield Program(f"{name}_functions", f"kernels/{name}_functions.cu", (), options + include, **how)


def _binding(name):
    functions = [f"{name.split('/')[0]}_{each}" for each in _LEET_FUNCTIONS[name].split()]
    return "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + "".join(f'  m.def("{each}", &{each}, "");\n' for each in functions) + "}\n"


STRANGERS = {
    "fast.cu": Repository(
        "https://github.com/pranjalssh/fast.cu",
        "38eb642e0c081231d6f695978be63604bd7c689b",
        list(_fast()),
        (
            ("matmul.cu", r"  warmupKernel<<<1024, 1024>>>\(\);\n", ""),  # reads shared memory that nobody has written
            ("matmul.cu", r"int main\(\) \{", "int main(int argc, char** argv) {"),
            ("matmul.cu", r"long m = max_size, n = max_size, k = max_size;", "long m = atol(argv[2]), n = atol(argv[3]), k = atol(argv[4]);"),
            ("matmul.cu", r"max_size = 8192;", "max_size = 2048;"),
            ("matmul.cu", r"sleep\(5\);", ""),
            ("matmul.cu", r"repeat_times = 8;", "repeat_times = 0;"),
            ("matmul.cu", r"\{0, 1, 2, [^}]*\}", "{atoi(argv[1])}"),
            # For matrices that are not square, and to one unit in the last place.
            ("matmul.cu", r"A, CUDA_R_16BF,\n    N,", "A, CUDA_R_16BF,\n    K,"),
            ("matmul.cu", r"&beta, C, CUDA_R_16BF, N,", "&beta, C, CUDA_R_16BF, M,"),
            ("matmul.cu", r"diff > 0\.1\)", "diff > 0.1 + std::fabs(__bfloat162float(matRef[i])) / 100)"),
            ("matmul.cu", r'printf\("%f\\n", __bfloat162float\(C_ref\[m\]\)\);', "return 3;"),
        ),
    ),
    "thunderkittens": Repository(
        "https://github.com/HazyResearch/ThunderKittens",
        "0b55588d2769dde0c7a9a606ffc015b0ca7a9551",
        list(_kittens()),
        (
            ("kernels/gemm/educational_h100/launch.cu", r"N = 4096;", "N = 256;"),
            ("kernels/gemm/educational_h100/launch.cu", r"i < 2; i\+\+\) \{ // warmup", "i < 0; i++) {"),
            ("kernels/gemm/educational_h100/launch.cu", r"(cudaFree\(d_C_ref\);\s*)return 0;", r"\1return error_count != 0;"),
            ("kernels/gemm/educational_h100/launch.cu", r"run_benchmark\(N, N, N\);\s*return 0;", "return run_benchmark(N, N, N);"),
        ),
    ),
    "wgmma-intrin": Repository(
        "https://github.com/csullivan/wgmma-intrin",
        "0c01ab2b9511c83c663b62b6335a211a2275c2c1",
        [
            Program("test_single_instance_wgmma", "test_single_instance_wgmma.cu", (), ("-I", "."), FAULT, "without a wgmma.fence", "no wgmma.fence; no barrier before wgmma; wait_group 1 waits for nothing"),
            Program("test_layout_transform_general", "test_layout_transform_general.cu", (), ("-I", ".")),
        ],
    ),
    "hopper-gemm-101": Repository(
        "https://github.com/HuyNguyen-hust/hopper-gemm-101",
        "23e26e26a5c0a5963b4b9febff84208182b6887d",
        list(_hopper()),
        (("src/profile_utils.cu", r"device_prop\.memoryClockRate", "2619000"),),  # which CUDA 13 does not have
        more={f"src/small_{name}.cu": _small_hopper(*what) for name, what in _HOPPER.items()},
    ),
    "sgemm": Repository(
        "https://github.com/siboehm/SGEMM_CUDA",
        "60cba6f9b20a198116c76f18de8047f44df8c8b8",
        list(_sgemm()),
        (
            ("sgemm.cu", r"SIZE = \{128[^}]*\}", "SIZE = {128, 256}"),
            ("sgemm.cu", r"repeat_times = 50", "repeat_times = 0"),
            ("sgemm.cu", r"#include <runner\.cuh>", '#include <runner.cuh>\n#include "src/runner.cu"'),
        ),
    ),
    "sgemm-practice": Repository(
        "https://github.com/wangzyon/NVIDIA_SGEMM_PRACTICE",
        "d6068b13e9997ccff51c9d3cb773afd176fb7d8f",
        [Program(f"kernel {k}", "sgemm.cu", (str(k),), ("-I", "src"), says="size: (512)") for k in range(8)],
        (
            ("sgemm.cu", r"size_len = 24", "size_len = 2"),
            ("sgemm.cu", r"repeat_times = 10", "repeat_times = 0"),
            ("sgemm.cu", r"#include <utils\.cuh>", '#include <utils.cuh>\n#include "src/utils.cu"'),
        ),
    ),
    "leetcuda": Repository(
        "https://github.com/xlite-dev/LeetCUDA",
        "cb6a0497e829741fc5e3ad5e43a5beed0d85edcd",
        list(_leet()),
        (
            ("kernels/hgemm/**/*.cu", r"test_num = 64", "test_num = 1"),
            ("kernels/hgemm/**/*.cu", r"j < 5;", "j < 1;"),
            ("kernels/hgemm/**/*.cu", r"outer_repeat = 10", "outer_repeat = 0"),  # times matrices that nobody has written
            ("kernels/hgemm/**/*.cu", r'(printf\("Max Error = %f\\n", max_error\);)', r"\1 if (!(max_error < 0.5f)) return 3;"),
            ("kernels/swizzle/*.cu", r"(cudaMalloc\(&(d_a|d_b|dev_A), (\w+)\);)", r"\1 cudaMemset(\2, 0, \3);"),
            ("kernels/nvidia-nsight/*.cu", r"constexpr int ([SK]) = 4096", r"constexpr int \1 = 256"),
            ("kernels/nvidia-nsight/*.cu", r"int R = 10;", "int R = 1;"),
        ),
        more={
            f"kernels/{name}_functions.cu": (
                f"kernels/{name}.cu",
                ((r"// from sgemm_async.*" if name == "sgemm/sgemm" else r"\Z", _binding(name)),),
            )
            for name in _LEET_FUNCTIONS
        },
    ),
    "llm.c": Repository(
        "https://github.com/karpathy/llm.c",
        "f1e2ace651495b74ae22d45d1723443fd00ecd3a",
        list(_llm()),
        (
            ("dev/cuda/*.cu", r"repeat_times = \d+", "repeat_times = 0"),
            ("dev/cuda/*.cu", r"\b(int|int64_t) B = \d+", r"\1 B = 2"),
            ("dev/cuda/*.cu", r"\b(int|int64_t) T = \d+", r"\1 T = 128"),
            ("dev/cuda/*.cu", r"\b(int|int64_t) V = \d+", r"\1 V = 1025"),
            ("dev/cuda/*.cu", r"\bint C = \d+", "int C = 256"),
            ("dev/cuda/*.cu", r"\bint OC = 768 \* 4", "int OC = 256"),
            ("dev/cuda/*.cu", r"\bint NH = \d+", "int NH = 4"),
            ("dev/cuda/*.cu", r"\bint L = \d+", "int L = 1"),
            ("dev/cuda/adamw.cu", r"num_parameters = 1048576", "num_parameters = 100000"),
        ),
        behind="int main(",
    ),
    "cuda-samples": Repository(
        "https://github.com/NVIDIA/cuda-samples",
        "c94ff366aed18c797b8a85dfaac7817b0228b420",
        list(_samples()),
        (
            *(edit for name, count in (("bf16", 16), ("cuda", 16), ("dmma", 32), ("imma", 16), ("tf32", 16)) for edit in _tiles(name, count)),
            ("Samples/3_CUDA_Features/warpAggregatedAtomicsCG/*.cu", r"(#define NUM_ELEMS +)10000000", r"\g<1>102400"),
            ("Samples/6_Performance/alignedTypes/*.cu", r"MEM_SIZE       = 50000000", "MEM_SIZE = 500000"),
            ("Samples/6_Performance/alignedTypes/*.cu", r"NUM_ITERATIONS = 32", "NUM_ITERATIONS = 1"),
            ("Samples/3_CUDA_Features/simpleCudaGraphs/*.cu", r"1 << 24", "1 << 18"),
            ("Samples/3_CUDA_Features/graphMemoryFootprint/*.cu", r"bytes  = 64 \* 1024 \* 1024", "bytes = 16 * 1024"),
            ("Samples/0_Introduction/simpleStreams/*.cu", r"nreps       = 10;", "nreps = 2;"),
            ("Samples/0_Introduction/simpleStreams/*.cu", r"n           = 16 \* 1024 \* 1024", "n = 64 * 1024"),
        ),
    ),
}


def table():
    """All of them as Markdown, by repository."""
    lines = []
    for name, repository in STRANGERS.items():
        lines += ["", f"## {name}", "", f"[{repository.url.removeprefix('https://github.com/')}]({repository.url}), commit {repository.commit[:7]}.", ""]
        lines += ["| program | result | why |", "| --- | --- | --- |"]
        for same in _runs(repository.programs):
            first, last = same[0], same[-1]
            number = re.search(r"\d+\Z", last.name)
            lines.append(f"| {first.name}{f' to {number[0]}' if len(same) > 1 else ''} | {first.result} | {first.why} |")
    return "\n".join(lines[1:]) + "\n"


def _runs(programs):
    """Neighbours that differ in the number at their end alone, by one, and end alike."""
    groups = []
    for program in programs:
        stem, number = re.fullmatch(r"(.*?)(\d*)", program.name).groups()
        before = groups[-1][-1] if groups else None
        if before and number and before.name == f"{stem}{int(number) - 1}" and (before.result, before.why) == (program.result, program.why):
            groups[-1].append(program)
        else:
            groups.append([program])
    return groups
