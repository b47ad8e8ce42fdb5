"""The command line: one module per verb, and the border where failures become sentences and exit codes."""
