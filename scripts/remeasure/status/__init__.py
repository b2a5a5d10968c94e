"""What a run has done, does and still has to do, read from its files and from the queue; changes nothing."""
