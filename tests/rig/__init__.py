"""The data plane alone: topics and control records made directly, without management or control plane."""
