"""Running on a SLURM cluster: what the site has, what its queue holds, and a driver that always ends."""
