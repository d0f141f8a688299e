"""Runtime of every data-plane process: settings, Kafka clients, the lane loop, checkpoints, heartbeats."""
