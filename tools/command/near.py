"""Which tests say soonest whether a change of a file is right."""

import os
import re

from .messages import Refused
from .places import ROOT

# Of a file's path, the first that fits: the nearest tests, and those that take minutes and say the rest. \1 is the pattern's group.
# first_NN_name runs a step's first tile; only the preset dev has it.
NEAREST = (
    (r"steps/(\d\d_\w+)/.*\.(?:cuh|h)", r"first_\1 learnt", r"test_\1 lessons_edits"),
    (r"steps/(\d\d_\w+)/.*\.cpp", r"test_\1", ""),
    (r"steps/(?:.*/first\w*\.cu|first_test\.py)", "lessons_first lessons", ""),
    (r"steps/.*/sass\.ini", "tools_report", ""),
    (r"steps/figures\.cpp", "figures lessons", ""),
    (r"steps/edits_test\.py", "lessons_edits", ""),
    (r"steps/tensor_parallel/cost_model.*", "test_cost_model", ""),
    (r"steps/tensor_parallel/(?:record|replay|timeline).*", "test_replay", "tools_see"),
    (r"steps/tensor_parallel/tcp_group.*", "test_tcp_group", ""),
    (r"steps/tensor_parallel/.*(?<!\.md)(?<!\.svg)", "test_tensor_parallel", "test_tcp_group exercise_36_tensor_parallel"),
    (r"steps/.*(?:\.md|\.svg|lessons_test\.py)", "lessons tables figures", "lessons_edits"),
    (r"steps/.*", "first_01_naive", "test_01_naive"),
    (r"(?:exercises|solutions)/(\d\d_\w+)/.*", r"exercise_\1", "exercises_walk"),
    (r"(?:exercises|solutions)/.*", "exercise_01_thread_mapping", "exercises_walk"),
    # --- what kernels are made of ---
    (r"common/device/learnt/.*", "learnt first_06_autotune first_20_fewer_requests", "test_06_autotune test_20_fewer_requests"),
    (r"common/device/dependent_launch\..*", "interpreter_dependent_launches first_14_dependent_launch", "test_14_dependent_launch"),
    (r"common/device/(?:wgmma|tensor_operand|operand_box)\..*", "interpreter_wgmma first_10_wgmma", "test_10_wgmma"),
    (r"common/device/cluster\..*", "interpreter_clusters first_16_multicast", "test_16_multicast"),
    (r"common/device/(?:mbarrier|bulk_copy|tensor_map)\..*", "interpreter_hopper first_09_tma", "test_09_tma"),
    (r"common/device/(?:ptx|relaxed|workspace)\..*", "interpreter_ptx first_08_split_k", "test_08_split_k"),
    (r"common/device/shared_bytes\..*", "interpreter_pointers first_09_tma", "lessons_edits"),
    (r"common/device/.*", "first_06_autotune", "test_06_autotune"),
    (r"common/gemm/(?:activation|two_widths).*", "gemm_activation", "test_07_fused_leaky_relu"),
    (r"common/gemm/.*", "gemm_contract first_01_naive", "test_01_naive"),
    # --- the harness, and what is made with it ---
    (r"common/harness/tuning/tuning_(?:cache|process|torture).*", "tuning_test tuning_torture", ""),
    (r"common/harness/tuning/.*", "tuning_test", "test_06_autotune"),
    (r"common/harness/(?:problem|results)/.*|common/harness/program/(?:availability|text).*", "harness_test first_01_naive_nn", "program_test"),
    (r"common/harness/conformance/.*", "test_01_naive", "test_06_autotune"),
    (r"common/harness/.*", "first_01_naive_nn", "program_test tools_command_options"),
    (r"common/library/page_test\.py", "library_page", ""),
    (r"common/library/(?:conformance_test|program)\.cpp", "test_one_call", ""),
    (r"common/library/.*", "library_test library_page", "test_one_call"),
    (r"common/exercise/speed.*", "exercise_speed_test", ""),
    (r"common/exercise/.*", "exercise_01_thread_mapping exercise_14_spot_the_race", "tools_command"),
    # --- the interpreter ---
    (r"common/interpreter/tests/(?:patterns|hopper_patterns|boxes|ptx_cases|wgmma_cases).*", "interpreter_golden", ""),
    (r"common/interpreter/tests/family_instruction\..*", "interpreter_family", ""),
    (r"common/interpreter/tests/(?!\w+_main|CMake)(\w+)\.cpp", r"interpreter_\1", ""),
    (r"common/interpreter/tests/.*", "interpreter_bugs", "interpreter_golden"),
    (r"common/interpreter/(?:floors_test\.py|README\.md)", "floors", ""),
    (r"common/interpreter/fuzz/.*", "interpreter_fuzz_right interpreter_fuzz_wrong", ""),
    (r"common/interpreter/checks/async_proxy\..*", "interpreter_hopper_bugs interpreter_hopper_pipelines", "interpreter_cluster_bugs"),
    (r"common/interpreter/(?:checks/(?:races|shadows)\.|happens_before/).*", "interpreter_bugs interpreter_ordering", "interpreter_fuzz_wrong"),
    (r"common/interpreter/checks/barrier_rounds\..*", "interpreter_barrier_rounds interpreter_ordering", "interpreter_tricky"),
    (r"common/interpreter/checks/visits\..*", "interpreter_cluster_bugs interpreter_clusters", ""),
    (r"common/interpreter/checks/dependence\..*", "interpreter_dependent_launches", "test_14_dependent_launch"),
    (r"common/interpreter/checks/(?:bad_indices|bounds)\..*", "interpreter_memory interpreter_bugs", "interpreter_pointers"),
    (r"common/interpreter/(?:checks/restrict|launch/host_variables)\..*", "interpreter_pointers", "interpreter_memory"),
    (r"common/interpreter/checks/initialised\..*", "interpreter_unwritten interpreter_bugs", "interpreter_ordering"),
    (r"common/interpreter/checks/.*", "interpreter_ordering", "interpreter_unwritten interpreter_tricky"),
    (r"common/interpreter/count/.*", "interpreter_counters", "interpreter_golden test_05_l2_swizzle"),
    (r"common/interpreter/cuda_runtime/(?:inline_ptx|labels|members|program)\.h", "tools_interpret", ""),
    (r"common/interpreter/cuda_runtime/tensor_maps\..*", "interpreter_hopper", "interpreter_golden"),
    (r"common/interpreter/cuda_runtime/memory\..*", "interpreter_runtime interpreter_memory", "tools_interpret"),
    (r"common/interpreter/cuda_runtime/.*", "interpreter_runtime", "tools_interpret"),
    (r"common/interpreter/include/cooperative_groups.*", "interpreter_groups", ""),
    (r"common/interpreter/include/.*", "interpreter_library_copies", "tools_interpret"),
    (r"common/interpreter/instructions/(?:bulk_copies|mbarriers|mbarrier_family|named_barriers|st_async)\..*",
     "interpreter_hopper interpreter_hopper_bugs", "interpreter_hopper_pipelines interpreter_clusters"),
    (r"common/interpreter/instructions/cluster\..*", "interpreter_clusters interpreter_cluster_bugs", ""),
    (r"common/interpreter/instructions/cp_async\..*", "interpreter_pipelines interpreter_pipeline_bugs", "interpreter_ptx"),
    (r"common/interpreter/instructions/griddepcontrol\..*", "interpreter_dependent_launches", "test_14_dependent_launch"),
    (r"common/interpreter/instructions/(?:tensor|mma_model)\..*", "interpreter_ptx interpreter_golden", "interpreter_wgmma"),
    (r"common/interpreter/instructions/wgmma\..*", "interpreter_wgmma", "interpreter_golden"),
    (r"common/interpreter/running/(?:family|block_context)\..*", "interpreter_family", "interpreter_hopper"),
    (r"common/interpreter/instructions/.*", "interpreter_bugs interpreter_ordering", "interpreter_tricky"),
    (r"common/interpreter/(?:builtins|language)/groups\..*", "interpreter_groups", ""),
    (r"common/interpreter/(?:builtins/memory|language/(?:memory|new_delete|libc|throwing_copies))\..*", "interpreter_language interpreter_memory",
     "tools_interpret"),
    (r"common/interpreter/(?:builtins|language)/.*", "interpreter_language interpreter_intrinsics", "tools_interpret"),
    (r"common/interpreter/running/launch_(?:chain|state)\..*", "interpreter_dependent_launches", "interpreter_runtime"),
    (r"common/interpreter/(?:memory/.*|launch/host_memory\..*)", "interpreter_memory", "interpreter_bugs"),
    (r"common/interpreter/launch/.*", "interpreter_scheduler interpreter_runtime", "interpreter_bugs"),
    (r"common/interpreter/(?:observe/events|block/recording)\..*", "interpreter_events", "tools_see"),
    (r"common/interpreter/(?:(?:observe|hooks)/control.*|meetings/waiting\..*)", "interpreter_waiting", "interpreter_tricky"),
    (r"common/interpreter/(?:hooks|observe)/.*", "interpreter_counters interpreter_language", "interpreter_golden"),
    (r"common/interpreter/(?:debug_info|report)/.*", "interpreter_bugs interpreter_counters", "docs_example"),
    (r"common/interpreter/schedule/cluster\..*", "interpreter_clusters", "interpreter_cluster_bugs"),
    (r"common/interpreter/meetings/meetings\..*", "interpreter_bugs interpreter_barrier_rounds", "interpreter_groups"),
    (r"common/interpreter/.*", "interpreter_scheduler interpreter_bugs", "interpreter_tricky"),
    (r"common/.*", "gemm_contract", ""),
    # --- the command, tables, pages ---
    (r"tools/cmake/arch.*", "tools_cmake_architectures", ""),
    (r"tools/cmake/kernel_version.*", "tools_cmake", ""),
    (r"tools/report/(?:tables|results)\.py", "tables tools_report", "results_schema"),
    (r"tools/report/figures\.py", "figures tools_report", ""),
    (r"tools/report/.*", "tools_report", ""),
    (r"tools/peers/.*", "tools_peers", ""),
    (r"tools/see/.*|tools/command/subcommands/see\.py", "tools_see", "tools_command"),
    (r"tools/interpret/.*", "tools_interpret", ""),
    (r"tools/docs_test\.sh|docs/book/.*", "tools_docs", ""),
    (r"tools/(?:plot|sass|registers|figures)", "tools_report", "tools_course"),
    (r"tools/command/.*|tools/course.*|tools/.*", "tools_command", "tools_course"),
    (r"docs/examples/one_call.*", "docs_one_call library_page", ""),
    (r"docs/examples/.*gdb.*", "docs_gdb", ""),
    (r"docs/examples/.*", "docs_example", "tools_docs"),
    (r"docs/results/.*\.json", "tables tools_report", ""),
    (r"docs/library\.md", "library_page", "tools_docs"),
    (r"docs/(?:licences|options)\.md", "tools_command", "tools_docs"),
    (r"docs/walk\.md", "exercises_walk", "tools_docs"),
    (r".*\.md", "tables", "tools_docs"),
    (r"CMakeLists\.txt|CMakePresets\.json", "gemm_contract", "tools_course"),
)


def of(path):
    """(the nearest tests, those that take minutes) of a file by its path below the course's folder; none of what no test knows."""
    for pattern, *tests in NEAREST:
        found = re.fullmatch(pattern, path)
        if found:
            return tuple(found.expand(names).split() for names in tests)
    return [], []


def tests(files):
    """(the nearest tests, those that take minutes) of FILES, as they were typed: each once, none in both."""
    near, whole = {}, {}
    for file in files:
        path = os.path.relpath(os.path.realpath(file), ROOT)
        if not os.path.isfile(os.path.join(ROOT, path)):
            raise Refused(f"--near {file}: there is no such file.")
        soon, later = of(path)
        if not soon:
            raise Refused(f"--near {file}: no test is about it. 'tools/course test' runs them all, and .ci/run what else there is.")
        near.update(dict.fromkeys(soon))
        whole.update(dict.fromkeys(later))
    return list(near), [test for test in whole if test not in near]
