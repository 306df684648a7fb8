"""From a free energy to equations in the order in which they are solved, checked."""
