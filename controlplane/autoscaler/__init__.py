"""The Autoscaler: as many lanes as the traffic asks for, out quickly, in slowly, and never more than help."""
