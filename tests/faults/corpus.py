"""All rows of the corpus."""

import rows_channels
import rows_command_line
import rows_compare
import rows_constraints
import rows_data
import rows_design
import rows_flags
import rows_forecast
import rows_functions
import rows_library
import rows_noise
import rows_order
import rows_outputs
import rows_runs
import rows_tables

ROWS = [
    *rows_command_line.ROWS,
    *rows_flags.ROWS,
    *rows_tables.ROWS,
    *rows_noise.ROWS,
    *rows_functions.ROWS,
    *rows_forecast.ROWS,
    *rows_compare.ROWS,
    *rows_data.ROWS,
    *rows_constraints.ROWS,
    *rows_outputs.ROWS,
    *rows_order.ROWS,
    *rows_design.ROWS,
    *rows_runs.ROWS,
    *rows_library.ROWS,
    *rows_channels.ROWS,
]
