"""The embedded models: a page reader, a judge and a small language model behind one chat protocol."""
