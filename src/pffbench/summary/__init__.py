"""From raw results to statements: statistics, decisions, tables and exports."""
