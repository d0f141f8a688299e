"""Data plane alone: topics and control records are created directly, without management or control plane."""
