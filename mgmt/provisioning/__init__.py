"""What the Provisioner decides by, so that pages may ask it, too: placing, topics, ramps. Pure but for settings."""
