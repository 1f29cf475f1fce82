"""What `pffbench doctor` looks at: one check per module, each a judgement of plain facts."""
