"""The way from a system of equations to a loop program, for each target."""
