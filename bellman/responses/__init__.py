"""Response banks: what a simulated model says, and how long a length-forced one writes."""
