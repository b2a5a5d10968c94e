"""Questions answered by a system under test through its adapter."""
