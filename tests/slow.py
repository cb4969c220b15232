"""Tests that take minutes and add little to each run: `pytest -m slow`, as the second part of `.ci/run` does."""

from __future__ import annotations

from typing import Final

SLOW: Final = (
    # the real runtime, real clients, every renderer, the pages of the documentation, what is packed
    "conformance",
    "export/renderers",
    "export/writers/test_colours.py",
    "integrations/notebook",
    "integrations/pytest_plugin",
    "integrations/test_a_users_repository.py",
    "pages",
    "real",
    "test_docs.py",
    "test_packaging.py",
    # time, bytes in every environment, damage by the thousand, signals and kills
    "benchmarks",
    "cli/commands/test_completion.py",
    "cli/test_sweep.py",
    "debug/test_endless_loops.py",
    "diagnosis/lint/test_damaged_files.py",
    "export/layout/test_layout.py",
    "export/reading_back",
    "export/test_figure_bytes.py",
    "export/test_fitting.py",
    "export/writers/test_added_format.py",
    "faults",
    "mutation",
    "recording/test_breaks.py",
    "recording/test_kill.py",
    "recording/test_trust.py",
    "repair/test_task_page.py",
    "test_collector.py",
    # whole applications beyond one of each screen and key family
    "tui/keys/test_any_keys.py",
    "tui/screens/graph",
    "tui/screens/test_addresses_at_cursor.py",
    "tui/screens/test_baseline.py",
    "tui/screens/test_every_screen.py",
    "tui/screens/test_headline.py",
    "tui/test_eight_tasks.py",
    "tui/test_picks.py",
    "tui/test_tour.py",
)
"""Files and folders of tests."""

SLOW_TESTS: Final = {
    "cli/commands/test_debug.py": (
        "test_a_signal_that_ends_the_program_keeps_the_session_first",
        "test_ctrl_c_pauses_an_endless_loop_and_clears_the_line_at_the_prompt",
        "test_a_killed_debugger_loses_nothing_of_what_was_set_up",
        "test_ctrl_c_ends_a_script",
    ),
    "cli/commands/test_print_and_find.py": ("test_flipped_bytes_do_no_harm",),
    "cli/test_application.py": ("test_the_application_paints_for_a_browser_where_textual_serve_asks_for_it",),
    "cli/test_cases.py": (
        "test_an_application_has_time_to_end_after_a_second_ctrl_c",
        "test_a_signal_that_ends_the_command_ends_the_application",
    ),
    "cli/test_ci.py": ("test_the_step_of_the_action_runs_the_command_and_keeps_its_code",),
    "cli/test_program.py": (
        "test_idle_threads_of_blas_sleep_early_unless_the_environment_says_how_long",
        "test_an_interrupt_ends_an_endless_loop_with_code_130_and_its_place",
        "test_a_reader_that_goes_away_ends_the_program_quietly",
        "test_a_terminal_shows_where_a_long_run_is_and_is_cleared_at_the_end",
        "test_a_quiet_run_shows_nothing_on_a_terminal",
        "test_a_full_disk_is_a_message",
        "test_a_stream_that_the_shell_closed_is_no_failure",
    ),
    "cli/test_session_file.py": (
        "test_a_script_that_fails_does_not_touch_the_session",
        "test_what_does_not_fit_a_session_is_refused_with_code_3",
        "test_what_breakpoints_of_a_file_do_is_shown_and_waits_for_the_user",
        "test_no_line_is_wider_than_the_terminal",
        "test_rules_and_opened_sequences_are_those_of_the_session",
    ),
    "cli/test_states.py": ("test_openvino_begins_with_them_too",),
    "debug/story/test_story.py": ("test_the_shapes_that_a_story_shows_can_be_typed",),
    "debug/test_walks.py": ("test_a_walk_goes_on_after_a_kill",),
    "diagnosis/reduce/test_reduce.py": (
        "test_a_fault_of_the_runtime_has_a_case_that_shows_it",
        "test_the_test_of_a_case_fails_with_the_fault_and_passes_when_it_is_mended",
        "test_an_interrupt_keeps_the_best_so_far",
        "test_a_state_and_an_engine_of_fewer_bits_are_part_of_the_fault",
        "test_of_a_nan_the_operation_that_bears_it_is_left",
    ),
    "export/steps/test_html_page.py": (
        "test_an_address_leads_to_an_iteration_to_the_figures_alone_and_to_a_theme",
        "test_keys_walk_play_and_write_the_address",
        "test_thumbnails_are_those_of_the_svg",
        "test_a_long_run_is_bounded_in_size_time_and_words",
    ),
    "export/steps/test_playing.py": ("test_it_plays_in_an_img_and_stands_still_where_it_should",),
    "export/steps/test_steps.py": ("test_the_same_run_gives_the_same_bytes_whatever_the_hash_seed",),
    "export/writers/test_hostile_names.py": ("test_a_browser_runs_the_slider_and_nothing_of_the_name",),
    "files/test_locks.py": (
        "test_a_recording_that_is_being_written_is_neither_gone_on_with_nor_used_for_a_session",
        "test_of_four_debuggers_on_one_session_one_works_and_three_say_who",
    ),
    "files/test_output.py": (
        "test_a_file_that_may_not_become_large_enough_is_code_2_and_leaves_the_old_one",
        "test_processes_that_write_the_same_files_all_succeed_and_sets_stay_together",
        "test_a_recording_that_cannot_grow_is_not_called_unreadable",
        "test_a_kill_while_files_take_their_places_leaves_no_set_of_two_runs",
    ),
    "integrations/dap/test_server.py": (
        "test_broken_heads_and_messages_end_no_session",
        "test_the_token_of_a_port_is_printed_and_kept_for_its_user_alone",
        "test_the_program_ends_when_its_client_does",
    ),
    "integrations/test_documents.py": (
        "test_what_export_says_of_a_mistake_is_the_message",
        "test_modules_of_the_folder_are_not_loaded",
        "test_the_same_model_in_another_place_is_the_same_figure",
    ),
    "processes/test_worker.py": ("test_an_end_has_the_words_with_which_the_process_ended",),
    "recording/test_state.py": ("test_another_process_goes_on_from_every_iteration_of_every_sample",),
    "repair/test_repair.py": ("test_what_no_edit_explains_is_said",),
    "session/test_sessions.py": ("test_in_another_process_a_session_is_the_same",),
    "test_gallery.py": ("test_a_figure_of_the_gallery_is_current",),
    "test_pickling.py": ("test_a_pool_of_processes_reads_and_compiles_a_model_once",),
    "tui/keys/test_key_files.py": ("test_the_application_takes_them_and_tells_conflicts_at_the_start",),
    "tui/keys/test_type_ahead.py": ("test_a_burst_of_keys_does_what_the_same_keys_do_one_by_one",),
    "tui/paint/test_painting.py": ("test_lines_that_are_kept_are_those_that_textual_would_paint",),
    "tui/screens/inputs/test_inputs_again.py": (
        "test_each_run_keeps_its_own_session",
        "test_breakpoints_and_watches_are_kept_and_the_run_is_at_its_start",
        "test_inputs_that_do_not_do_leave_the_run_as_it_is",
    ),
    "tui/screens/inputs/test_inputs_options.py": (
        "test_a_script_and_a_place_come_after_the_inputs",
        "test_rules_memory_limits_and_open_sequences_count",
    ),
    "tui/screens/inputs/test_inputs_screen.py": (
        "test_what_cannot_be_is_said_in_place",
        "test_a_literal_of_too_few_brackets_is_offered_with_more",
        "test_the_inputs_can_be_chosen_again_while_the_model_runs",
    ),
    "tui/screens/test_sheet.py": (
        "test_what_steps_goes_on_from_the_cursor_and_takes_it_along",
        "test_the_value_and_the_graph_of_the_cell_open_and_close_again",
        "test_keys_typed_before_the_sheet_is_there_wait_for_it",
        "test_a_step_into_a_branch_or_an_inner_loop_shows_its_rows",
        "test_in_ascii_the_sheet_says_the_same",
        "test_loops_one_after_another_are_reached_by_tree_search_and_address",
        "test_it_is_kept_with_a_session",
        "test_enter_on_an_if_goes_into_the_side_that_ran",
        "test_a_debugger_that_stands_in_a_loop_is_shown_there",
        "test_the_path_names_the_iterations_of_all_loops_around",
    ),
    "tui/screens/test_value_screen.py": (
        "test_colours_zoom_in_on_the_cursor_until_elements_are_seen_alone",
        "test_steps_are_taken_while_a_large_tensor_is_looked_through",
        "test_many_elements_in_a_cell_saturate_no_picture_whichever_number_stands_for_them",
        "test_a_long_row_of_few_elements_has_its_numbers_below_its_shades",
        "test_colours_without_colours_carry_figures",
        "test_the_only_nan_of_a_large_tensor_shows_and_is_found",
        "test_colours_of_the_difference_are_those_of_the_largest_change",
        "test_outputs_of_the_model_are_shown_at_the_end_of_the_run",
    ),
    "tui/session/test_sessions.py": (
        "test_a_second_application_on_the_same_model_is_told_and_leaves_what_the_first_keeps",
        "test_a_rerun_reads_the_files_anew_and_keeps_place_and_breakpoints",
        "test_what_is_kept_by_model_and_broken_is_replaced",
        "test_a_layout_that_cannot_be_is_passed_over",
        "test_on_other_inputs_breakpoints_watches_and_layout_come_back_but_no_place",
        "test_a_file_that_the_user_names_is_the_one",
        "test_a_session_of_an_older_version_opens_on_the_sheet",
        "test_an_action_that_raises_is_reported",
        "test_an_expression_that_fails_is_shown_and_the_run_goes_on",
        "test_a_session_is_saved_while_one_works",
        "test_a_pane_that_raises_is_reported_the_session_goes_on_and_is_saved",
        "test_an_operation_that_fails_in_a_loop_is_shown_with_stack_and_shapes_and_one_goes_back",
        "test_nothing_is_written_but_in_the_sessions_folder",
    ),
    "tui/test_conveniences.py": (
        "test_what_is_on_the_screen_is_exported",
        "test_python_without_an_end_is_ended_by_escape",
    ),
    "tui/test_opening.py": (
        "test_a_key_goes_before_the_run_which_then_goes_on",
        "test_an_edit_that_is_in_a_file_is_left_and_another_one_is_asked_about_once",
        "test_a_session_goes_on_where_it_was_and_a_line_of_the_command_line_goes_there",
        "test_of_edits_that_come_back_is_told_before_one_leaves",
        "test_a_movement_that_takes_long_says_where_it_is_and_that_nothing_can_end_it",
    ),
    "tui/test_terminal.py": (
        "test_an_application_whose_terminal_is_closed_ends",
        "test_ctrl_z_gives_the_terminal_back_also_while_one_types",
    ),
    "tui/worker/test_driver.py": (
        "test_escape_stops_a_long_run_and_nothing_is_lost",
        "test_the_event_loop_never_waits_for_the_run",
        "test_a_fault_in_a_pane_is_told_and_the_others_go_on",
        "test_what_the_first_key_needs_is_loaded_in_the_worker_for_which_its_run_stands_still",
        "test_a_fault_stays_on_the_line_until_the_user_does_something",
        "test_breakpoints_and_watches_of_the_start_up_file_are_there",
    ),
    "tui/worker/test_editors.py": (
        "test_an_editor_is_refused_a_movement_while_the_application_moves_and_may_pause_it",
        "test_breakpoints_of_both_are_one_list_and_those_of_the_editor_go_with_it",
        "test_edits_and_logged_lines_are_seen_by_both",
        "test_the_session_ends_with_the_application_and_when_another_run_follows",
        "test_the_session_that_is_kept_has_nothing_of_an_editor_that_was_there_at_the_end",
        "test_a_second_editor_is_refused_and_one_that_launches_too",
        "test_an_editor_that_leaves_or_vanishes_leaves_a_movement_of_the_application_alone",
    ),
}
"""Tests of files whose other tests are quick: signals and kills, programs, more applications, random models."""


def is_slow(relative: str, name: str = "") -> bool:
    """True for a file of tests, as its path below the folder of tests, or for the test of this name in it."""
    relative = relative.partition("::")[0].removesuffix("/")
    return name in SLOW_TESTS.get(relative, ()) or any(
        relative == one or relative.startswith(f"{one}/") for one in SLOW
    )
