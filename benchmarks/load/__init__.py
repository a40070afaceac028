"""The load generator's own work: topics made, requests summed up."""
