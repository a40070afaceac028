"""Running of requests' work: tasks, long work in steps, worker processes."""
