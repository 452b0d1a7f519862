"""What a machine is fast and slow at: typical numbers, or those of the one at hand."""
