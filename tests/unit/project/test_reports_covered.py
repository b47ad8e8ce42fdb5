"""Faults of building that users of other toolchains reported, and the tests that keep them out of this one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
REPORTS = "integration/test_reports_builder.py"

# report → (file, test) that would fail if the fault came back
COVERED = {
    "B001 a killed build blocks the next": [
        ("integration/test_compile_kill.py", "test_a_build_killed_while_compiling_does_not_block_those_that_wait"),
        ("integration/test_compile_kill.py", "test_ten_builds_killed_at_random_leave_what_a_clean_build_makes"),
    ],
    "B002 compile jobs exhaust the memory": [
        ("unit/compile/test_compile_memory.py", "test_processors_and_memory_hold_whatever_the_machine"),
        ("unit/compile/test_compile_memory.py", "test_steps_that_took_much_run_by_fewer"),
        (REPORTS, "test_the_number_of_jobs_is_the_users_and_is_said_first"),
    ],
    "B005 an undeclared floor of the C library": [
        (REPORTS, "test_a_function_that_the_oldest_supported_system_lacks_stops_the_build"),
        (REPORTS, "test_functions_that_new_systems_moved_do_not_raise_the_floor"),
    ],
    "B007 another ABI shows as a mangled symbol": [
        ("unit/loader/test_importing.py", "test_linker_errors_in_words"),
    ],
    "B008 a module for one Python among abi3 ones": [
        ("unit/check/test_check_package.py", "test_a_module_for_one_python_among_abi3_ones_is_refused"),
        ("unit/check/test_check_binary.py", "test_a_python_function_outside_the_limited_api_is_named"),
        ("integration/test_compile_library.py", "test_the_module_imports_on_every_python_at_hand"),
    ],
    "B009 the unstable API in a stable variant": [
        (REPORTS, "test_a_stable_kernel_that_calls_the_unstable_api_is_refused"),
    ],
    "B011 other architectures than asked for": [
        (REPORTS, "test_the_library_holds_the_architectures_of_the_kernel_alone"),
    ],
    "B012 no architecture without a GPU": [
        (REPORTS, "test_the_library_holds_the_architectures_of_the_kernel_alone"),
    ],
    "B014 a flag that older toolkits do not know": [
        ("unit/toolchain/test_nvcc_flags.py", "test_a_flag_that_only_newer_releases_know_is_named_for_the_older_one"),
    ],
    "B015 the first nvcc that is found": [
        ("unit/toolchain/test_nvcc_system.py", "test_every_version_gets_its_own_toolkit"),
        ("unit/toolchain/test_nvcc_system.py", "test_none_fits_names_every_candidate_with_path_and_version"),
    ],
    "B016 a host compiler that nvcc does not take": [
        ("unit/toolchain/test_nvcc_host_range.py",
         "test_a_too_new_gcc_is_replaced_by_the_newest_that_fits_and_that_is_said"),
        ("unit/toolchain/test_nvcc_host_range.py",
         "test_only_too_new_compilers_stop_with_the_range_and_the_remedy"),
    ],
    "B017 no nvcc": [
        ("unit/toolchain/test_nvcc_debian.py",
         "test_without_apt_the_ways_to_an_nvcc_are_told_before_a_byte_is_fetched"),
        ("unit/toolchain/test_nvcc_locked.py", "test_an_installed_nvcc_runs_only_when_it_is_asked_for"),
    ],
    "B018 a stale result": [
        (REPORTS, "test_a_header_that_git_set_back_in_time_is_compiled_again"),
        ("integration/test_compile_rebuild.py", "test_a_changed_flag_reaches_its_component_only"),
        ("integration/test_compile_rebuild.py", "test_another_architecture_compiles_that_one_only"),
        ("integration/test_compile_rebuild.py", "test_another_toolkit_compiles_its_device_code_only"),
        ("integration/test_compile_rebuild.py", "test_another_torch_sdk_compiles_its_binding_only"),
    ],
    "B020 another torch than the label says": [
        (REPORTS, "test_headers_and_metadata_are_of_the_torch_on_the_label"),
    ],
    "B021 versions compared as text": [
        ("unit/plan/test_plan_selection.py", "test_versions_are_compared_as_numbers"),
    ],
    "B022 statics that kernels share": [
        (REPORTS, "test_kernels_and_versions_share_neither_state_nor_names"),
        ("unit/check/test_check_binary.py", "test_a_static_shared_by_all_kernels_of_a_process_is_refused"),
    ],
    "B023 ops under a fixed name": [
        (REPORTS, "test_python_that_breaks_only_later_is_refused_with_its_line"),
        (REPORTS, "test_ops_under_a_fixed_name_are_refused_in_cxx"),
    ],
    "B025 bundled libraries and run paths": [
        (REPORTS, "test_the_module_brings_nothing_and_searches_nowhere"),
    ],
    "B027 imported before torch": [
        (REPORTS, "test_a_package_is_imported_before_torch"),
    ],
    "B028 other bytes from the same sources": [
        ("integration/test_compile_library.py", "test_another_folder_store_and_number_of_jobs_give_the_same_bytes"),
        (REPORTS, "test_uncommitted_sources_are_recorded_and_said"),
    ],
    "B029 one failure costs the whole matrix": [
        (REPORTS, "test_one_variant_that_fails_costs_no_other"),
        (REPORTS, "test_one_variant_that_a_check_refuses_costs_no_other"),
        ("unit/compile/test_compile_build.py",
         "test_keep_going_builds_the_other_variants_and_a_later_run_only_the_failed_one"),
    ],
    "B030 a long way to the first kernel": [
        ("integration/test_first_steps.py", "test_four_commands_lead_to_a_loaded_kernel"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("report", COVERED)
def test_a_report_has_its_tests(report: str) -> None:
    for file, name in COVERED[report]:
        tree = ast.parse((TESTS / file).read_text())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{file}: {name}"
