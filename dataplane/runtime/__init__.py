"""What every data-plane process needs around its pure core: settings, Kafka clients, the lane loop, heartbeats."""
