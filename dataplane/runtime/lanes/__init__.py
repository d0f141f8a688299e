"""Lane loop and its parts: ack windows, checkpoints, poison detection, fairness."""
