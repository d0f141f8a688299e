"""Pages of replays."""
